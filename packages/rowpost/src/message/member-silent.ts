/** Prefix of the error of an attempt whose member fell silent before it ended. */
export const MEMBER_SILENT = "MEMBER_SILENT";

/** Prefix of the error of a mark, overwritten by the end of the same attempt. */
export const BEGUN_MARK: string = `${MEMBER_SILENT}: its member has begun it`;
