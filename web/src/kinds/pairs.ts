/**
 * Names and values as text: `NAME=value` on each line. A value that does not fit on a line is
 * written as JSON: `NAME="two\nlines"`.
 */
export function writePairs(pairs: Record<string, string>): string {
  return Object.entries(pairs)
    .map(([name, value]) => `${name}=${isPlain(value) ? value : JSON.stringify(value)}`)
    .join('\n');
}

/** Parses such a text. Throws if a line is invalid, or if it repeats a name. */
export function readPairs(text: string): Record<string, string> {
  const pairs = new Map<string, string>();
  const lines = text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean);
  for (const [index, line] of lines.entries()) {
    const at = line.indexOf('=');
    if (at < 1) throw new Error(`Line ${index + 1}: write NAME=value`);
    const name = line.slice(0, at).trim();
    if (pairs.has(name)) throw new Error(`Line ${index + 1}: ${name} is defined twice`);
    pairs.set(name, valueOf(line.slice(at + 1)));
  }
  return Object.fromEntries(pairs);
}

/**
 * Whether `readPairs` returns the value unchanged. It has one line, no blanks at its ends, and does
 * not look like JSON.
 */
function isPlain(value: string): boolean {
  return !/[\r\n]/.test(value) && value.trim() === value && valueOf(value) === value;
}

function valueOf(text: string): string {
  if (!/^".*"$/s.test(text)) return text;
  try {
    return JSON.parse(text) as string;
  } catch {
    return text;
  }
}
