/** How the error of an attempt begins whose member fell silent before it ended. */
export const MEMBER_SILENT = "MEMBER_SILENT";

/** How that of a mark begins, which the end of the same attempt overwrites. */
export const BEGUN_MARK: string = `${MEMBER_SILENT}: its member has begun it`;
