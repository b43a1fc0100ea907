export function buildInfo(version: string): string {
  const help = "# HELP rowpost_build_info Version of rowpost and of Node.\n# TYPE rowpost_build_info gauge\n";
  return `${help}rowpost_build_info{version="${version}",node="${process.versions.node}"} 1\n`;
}
