import { describe, expect, it } from 'vitest';
import type { Me } from '../src/api/schema';
import { metadataOf } from '../src/kinds/metadata';
import type { Row } from '../src/state/environments';
import { filtersOf, isMine, listed } from '../src/state/filters';

const me = { login: 'ada@acme.io', owner: 'u-4f2a', username: 'oidc:ada@acme.io' } as Me;

describe('owner filter', () => {
  it('counts environments of the command line as mine', () => {
    for (const row of [
      { owner: 'ada@acme.io', ownerLabel: 'u-4f2a' },
      { owner: 'oidc:ada@acme.io', ownerLabel: 'u-0b1c' },
    ]) {
      expect(isMine(row, me)).toBe(true);
    }
    expect(isMine({ owner: 'oidc:grace@acme.io', ownerLabel: 'u-0b1d' }, me)).toBe(false);
  });

  it('finds environments without an owner', () => {
    const row = (name: string, owner: string) =>
      ({
        name,
        owner,
        ownerLabel: '',
        namespace: 'n',
        kind: 'StockPool',
        apiVersion: 'a/v1',
        plural: 'stockpools',
        createdAt: '',
        key: name,
      }) as Row;
    const rows = [row('a', ''), row('b', 'grace'), row('c', 'ada@acme.io')];
    const names = (search: string) =>
      listed(rows, filtersOf(new URLSearchParams(search)), me, metadataOf([])).map(
        ({ name }) => name,
      );
    expect(names('owner=-&sort=name')).toEqual(['a']);
    expect(names('sort=name')).toEqual(['c']);
    expect(names('owner=*&sort=name')).toEqual(['a', 'b', 'c']);
  });
});
