export interface PageProps {
  readonly source: string;
}
