export interface PageProps {
  /** Name of the message table. */
  readonly source: string;
}
