/** How the error of an attempt begins whose member fell silent before it ended. */
export const MEMBER_SILENT = "MEMBER_SILENT";
