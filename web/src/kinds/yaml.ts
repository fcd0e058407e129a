import { Document, isScalar, parseDocument, visit, type Scalar, type YAMLMap } from 'yaml';

/**
 * YAML as kubectl reads and prints it. kubectl has its own rules for scalars: `0755` is 493, `no`
 * is false. paved/tests/yaml-scalars.tsv lists them. Tests compare this reader and the one of
 * `paved` with that list.
 */

const WORDS = new Map<string, null | boolean | number>([
  ...['', '~', 'null', 'Null', 'NULL'].map((word) => [word, null] as const),
  ...['y', 'Y', 'yes', 'Yes', 'YES', 'true', 'True', 'TRUE', 'on', 'On', 'ON'].map(
    (word) => [word, true] as const,
  ),
  ...['n', 'N', 'no', 'No', 'NO', 'false', 'False', 'FALSE', 'off', 'Off', 'OFF'].map(
    (word) => [word, false] as const,
  ),
  ...['.nan', '.NaN', '.NAN'].map((word) => [word, NaN] as const),
  ...['.inf', '.Inf', '.INF', '+.inf', '+.Inf', '+.INF'].map((word) => [word, Infinity] as const),
  ...['-.inf', '-.Inf', '-.INF'].map((word) => [word, -Infinity] as const),
]);

const INTEGERS: [RegExp, string][] = [
  [/^([-+]?)0x([0-9a-f]+)$/i, '0x'],
  [/^([-+]?)0o([0-7]+)$/i, '0o'],
  [/^([-+]?)0b([01]+)$/i, '0b'],
  // go-yaml also accepts a sign after 0b.
  [/^0b([-+])([01]+)$/, '0b'],
  [/^([-+]?)0([0-7]+)$/, '0o'],
  [/^([-+]?)(0|[1-9]\d*)$/, ''],
];

const FLOAT = /^[-+]?(\.\d+|\d+(\.\d*)?)(e[-+]?\d+)?$/i;

/** The value of a text without quotes or tag. */
function plain(text: string): string | null | boolean | number | bigint {
  const word = WORDS.get(text);
  if (word !== undefined) return word;
  if (!/^[-+.\d]/.test(text) || (text.startsWith('.') && /(^|\D)_|_(\D|$)/.test(text))) return text;
  const digits = text.replaceAll('_', '');
  for (const [pattern, prefix] of INTEGERS) {
    const [, sign, number] = pattern.exec(digits) ?? [];
    if (number === undefined) continue;
    const integer = BigInt(prefix + number) * (sign === '-' ? -1n : 1n);
    // 64 bits, with or without a sign. A larger number is a float if it has the form of one.
    const most = /^\d/.test(text) ? 2n ** 64n : 2n ** 63n;
    if (integer >= -(2n ** 63n) && integer < most) return integer;
  }
  const float = FLOAT.test(digits) ? Number(digits) : NaN;
  return Number.isFinite(float) ? float : text;
}

/** A scalar's value. */
function valueOf(text: string, tag: string | undefined): string | null | boolean | number {
  const name = tag?.startsWith(STANDARD) ? tag.slice(STANDARD.length) : undefined;
  if (name === 'binary')
    return new TextDecoder().decode(
      Uint8Array.from(atob(text.replaceAll(/\s/g, '')), (byte) => byte.charCodeAt(0)),
    );
  const found = tag === undefined || (name !== undefined && name !== 'str') ? plain(text) : text;
  if (name !== undefined && TYPES[name]?.includes(found === null ? 'null' : typeof found) === false)
    throw new Error(`"${text}" is not a valid !!${name}`);
  if (typeof found === 'bigint' || typeof found === 'number') {
    const number = Number(found);
    if (!Number.isFinite(number) || Math.abs(number) > Number.MAX_SAFE_INTEGER)
      throw new Error(`Put ${text} in quotes: the number is too large`);
    return number === 0 ? 0 : number;
  }
  return found;
}

const STANDARD = 'tag:yaml.org,2002:';
const TYPES: Record<string, string[]> = {
  null: ['null'],
  bool: ['boolean'],
  int: ['bigint'],
  float: ['number', 'bigint'],
};

/** A key, which is a text in JSON. */
function keyOf(text: string): string {
  const found = plain(text);
  if (found === null) throw new Error('A name is missing before a colon');
  if (typeof found === 'bigint' && found >= 2n ** 63n)
    throw new Error(`Put ${text} in quotes: kubectl accepts no larger number as a name`);
  return typeof found === 'number' ? short(found) : String(found);
}

/** Go's shortest form of a 32-bit float, which keys use. */
function short(value: number): string {
  const number = Math.fround(value);
  if (Number.isNaN(number)) return '.nan';
  if (!Number.isFinite(number)) return number > 0 ? '.inf' : '-.inf';
  const fits = (digits: number) => Math.fround(Number(number.toPrecision(digits))) === number;
  const digits = [1, 2, 3, 4, 5, 6, 7, 8, 9].find(fits) ?? 9;
  const [mantissa = '', exponent = '0'] = number.toExponential(digits - 1).split('e');
  if (Object.is(number, -0)) return '-0';
  if (Number(exponent) >= -4 && Number(exponent) < 6)
    return String(Number(number.toPrecision(digits)));
  return `${mantissa}e${exponent.startsWith('-') ? '-' : '+'}${exponent.slice(1).padStart(2, '0')}`;
}

const isPlain = (node: Scalar) => node.type === 'PLAIN' && node.tag === undefined;
const sourceOf = (node: Scalar) => node.source ?? String(node.value);

/** Renames the keys of an object to the names that kubectl gives them. */
function nameKeys({ items }: YAMLMap): void {
  const names = new Set<string>();
  items.forEach(({ key }, index) => {
    if (key === null) throw new Error('A name is missing before a colon');
    if (!isScalar(key)) throw new Error('A name before a colon must be one word or a quoted text');
    const source = sourceOf(key);
    if (isPlain(key) && source === '<<') {
      // In kubectl, merged fields replace the fields before them; in the library they do not.
      if (index > 0) throw new Error('Write << before the other names');
      return;
    }
    const name = isPlain(key) ? keyOf(source) : String(key.value);
    if (names.has(name)) throw new Error(`The name ${name} is used twice`);
    names.add(name);
    key.value = name;
  });
}

/**
 * Parses a document. Throws an error with a message for users unless the text is one document that
 * kubectl can read.
 */
export function readYaml(text: string): unknown {
  const document = parseDocument(text, { schema: 'failsafe', merge: true });
  const [error] = document.errors;
  if (error?.code === 'MULTIPLE_DOCS')
    throw new Error('Enter only one document: remove --- and all text after it');
  if (error) throw error;
  visit(document, {
    Map: (_, map) => nameKeys(map),
    Scalar: (key, node) => {
      if (key !== 'key' && (isPlain(node) || node.tag !== undefined))
        node.value = valueOf(sourceOf(node), node.tag);
    },
  });
  return document.toJS();
}

/** Whether kubectl reads a text without quotes as another value than the text. */
function needsQuotes(text: string, isKey: boolean): boolean {
  if (!isKey) return plain(text) !== text;
  try {
    return text === '<<' || keyOf(text) !== text;
  } catch {
    return true;
  }
}

/** Writes a value as a document that kubectl reads as the same value. */
export function writeYaml(value: unknown): string {
  const document = new Document(value, { aliasDuplicateObjects: false });
  visit(document, {
    Scalar: (key, node) => {
      if (typeof node.value === 'string' && needsQuotes(node.value, key === 'key'))
        node.type = 'QUOTE_DOUBLE';
    },
  });
  return document.toString({ lineWidth: 0 });
}
