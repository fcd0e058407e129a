/**
 * Names and their values as text: `NAME=value` on each line. What no line holds as it is stands
 * there as JSON writes it: `NAME="two\nlines"`.
 */
export function writePairs(pairs: Record<string, string>): string {
  return Object.entries(pairs)
    .map(([name, value]) => `${name}=${isPlain(value) ? value : JSON.stringify(value)}`)
    .join('\n');
}

/** Reads such a text; throws where a line is none, or names what is there already. */
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
 * Whether a value is read as it is written: it is one line without blanks at its ends, and looks
 * like no JSON.
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
