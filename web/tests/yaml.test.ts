import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readYaml, writeYaml } from '../src/kinds/yaml';

/** The results of kubectl: a scalar, its JSON type and value, and its text as a key. */
const TABLE = readFileSync(join(import.meta.dirname, '../../paved/tests/yaml-scalars.tsv'), 'utf8')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#') && !line.startsWith('scalar\t'))
  .map((line) => line.split('\t') as [string, string, string, string]);

const thrown = (text: string) => {
  try {
    return { value: readYaml(text) };
  } catch {
    return 'error';
  }
};

describe('YAML', () => {
  it.each(TABLE)('reads %s as kubectl does', (scalar, type, value) => {
    const number = Number(value);
    const isTooLarge =
      ['integer', 'number'].includes(type) && Math.abs(number) > Number.MAX_SAFE_INTEGER;
    const wanted =
      type === 'error' || isTooLarge ? 'error' : { value: { a: JSON.parse(value) as unknown } };
    expect(thrown(`a: ${scalar}`)).toEqual(wanted);
  });

  it.each(TABLE.filter(([scalar]) => !scalar.startsWith('!')))(
    'reads %s as a name as kubectl does',
    (scalar, _type, _value, key) => {
      const wanted = key === 'error' ? 'error' : { value: { [JSON.parse(key) as string]: 'b' } };
      expect(thrown(`${scalar}: b`)).toEqual(wanted);
    },
  );

  it('keeps blocks, lists and merged fields', () => {
    expect(
      readYaml('base: &base {mode: 0755}\nall:\n  - <<: *base\n    text: |\n      no\n'),
    ).toEqual({ base: { mode: 493 }, all: [{ mode: 493, text: 'no\n' }] });
  });

  it.each(TABLE)('writes %s so that kubectl reads it back', (scalar) => {
    const value = { a: scalar, b: [scalar], [scalar]: 1 };
    expect(readYaml(writeYaml(value))).toEqual(value);
  });

  it.each([
    ['a: 1\n---\nb: 2\n', 'only one document'],
    ['yes: 1\ntrue: 2\n', 'The name true is used twice'],
    ['mode: 1\n<<: {mode: 2}\n', 'Write << before'],
    ['[a]: 1\n', 'A name before a colon'],
  ])('rejects %j', (text, error) => {
    expect(() => readYaml(text)).toThrow(error);
  });

  it('names a number that is too large', () => {
    expect(() => readYaml('id: 987654321098765433')).toThrow('Put 987654321098765433 in quotes');
  });
});
