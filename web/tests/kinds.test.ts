import { describe, expect, it, vi } from 'vitest';
import { causesOf, slowOf, underWaySince } from '../src/kinds/causes';
import { changed, differences } from '../src/kinds/changes';
import { historyOf } from '../src/kinds/history';
import { readPairs, writePairs } from '../src/kinds/pairs';
import { nameOf, treeOf, type Node } from '../src/kinds/tree';
import { faultsOf } from '../src/kinds/validate';
import { ago, count, exactly, toLabel } from '../src/kinds/format';
import { APIS, causeOf } from './data';
import { goldenOf } from './golden';
import { World } from './world';

const drawn = (nodes: Node[], depth = 0): string[] =>
  nodes.flatMap(({ name, part, children }) => [
    `${'  '.repeat(depth)}${part ? name : `(${name})`}`,
    ...drawn(children, depth + 1),
  ]);

it('names the remaining parts during a deletion, without dates for waiting parts', () => {
  const left = [
    {
      slot: 'composite',
      kind: 'UnifiedEnvironment',
      ready: false,
      since: '2026-01-01T00:00:01Z',
      reason: 'Deleting',
    },
    {
      slot: 'namespace',
      kind: 'Object',
      ready: false,
      since: '',
      reason: 'Deleting',
      message: 'waits until the resources that use it are deleted',
    },
  ];
  expect(left.map(nameOf)).toEqual(['Composite', 'Namespace']);
  const view = new World().add('unified-environment', {
    name: 'a',
    namespace: 'team',
    createdAt: '2026-01-01T00:00:00Z',
    deletedAt: '2026-01-01T00:00:01Z',
    ready: false,
    parts: left,
  });
  expect(historyOf({ ...view, parts: left }).map(({ title }) => title)).toEqual([
    'Deletion requested',
    'Composite is being deleted',
    'Created by ada@acme.io',
  ]);
});

describe('the tree', () => {
  it('sorts related parts together', () => {
    expect(drawn(treeOf(goldenOf('gpu-workspace', 'ready').parts))).toEqual([
      'egress',
      'instance',
      '  instance-profile',
      'role',
      '  role-ssm',
      'security-group',
      'ssh-203.0.113.0/24',
      '(internal resources)',
      '  usage-security-group-by-instance',
    ]);
    expect(drawn(treeOf(goldenOf('unified-environment', 'ready').parts))).toMatchSnapshot();
  });

  it.each(APIS)('has every part of %s once', (api) => {
    const { parts } = goldenOf(api, 'ready');
    const slots = (nodes: Node[]): string[] =>
      nodes.flatMap(({ part, children }) => [...(part ? [part.slot] : []), ...slots(children)]);
    expect(slots(treeOf(parts)).sort()).toEqual(parts.map(({ slot }) => slot).sort());
  });
});

describe('causes', () => {
  const world = new World();
  const failing = (name: string, namespace: string) =>
    world.add('gpu-workspace', { name, namespace, stage: 'failing' });
  it('put environments with the same cause into one group', () => {
    const [one, two] = [failing('ada', 'team-vision'), failing('grace', 'team-robotics')];
    const other = world.add('unified-environment', {
      name: 'shop',
      namespace: 'team-shop',
      stage: 'failing',
    });
    const groups = causesOf([other, one, two], Date.now());
    expect(groups.map(({ hits }) => hits.length)).toEqual([2, 1]);
    expect(groups[0]!.hits.map(({ environment }) => environment.name)).toEqual(['ada', 'grace']);
    expect(groups[0]!.message).toMatch(/VcpuLimitExceeded/);
  });

  it('put parts of several kinds into one group', () => {
    const expired = failing('a', 'team-vision');
    const part = {
      reason: 'Failed',
      ready: false,
      message: 'ExpiredToken: expired',
      cause: causeOf('CredentialsInvalid'),
    };
    expired.parts = expired.parts.map((one, index) =>
      index < 2 ? { ...one, ...part } : { ...one, cause: undefined },
    );
    const [group, ...others] = causesOf([expired], Date.now());
    expect(others).toEqual([]);
    expect(group!.kinds.length).toBeGreaterThan(1);
  });

  it('show the rejection of a spec before the parts that failed', () => {
    const diagnosis = { cause: causeOf('InvalidSpec') };
    const refused = world.add('gpu-workspace', {
      name: 'x',
      namespace: 'team',
      stage: 'failing',
      phase: 'InvalidSpec',
      diagnosis,
      message: 'spec.memory: found "lots"',
    });
    const groups = causesOf([refused], Date.now());
    expect(groups).toHaveLength(1);
    expect(groups[0]).toMatchObject({
      cause: { code: 'InvalidSpec' },
      message: 'spec.memory: found "lots"',
      kinds: ['GpuDevWorkspaceClaim'],
    });
    expect(groups[0]!.hits[0]!.part).toBeUndefined();
  });

  it('have the date of a dated part', () => {
    const [one, two] = [failing('late', 'team'), failing('undated', 'team')];
    two.parts = two.parts.map((part) => ({ ...part, since: '' }));
    const since = one.parts.find(({ reason }) => reason === 'Failed')!.since;
    expect(since).not.toBe('');
    expect(
      [[one, two], [two, one], [two]].map((some) => causesOf(some, Date.now())[0]!.since),
    ).toEqual([since, since, '']);
  });

  it('count a diagnosis of the whole from its time on', () => {
    const now = Date.parse('2026-11-21T12:00:00Z');
    const diagnosis = { cause: causeOf('Uncomposed'), from: '2026-11-21T11:03:00Z' };
    const waits = (name: string, over: object) =>
      world.add('stock-pool', {
        name,
        namespace: 'team',
        ready: false,
        parts: [],
        createdAt: '2026-11-21T11:00:00Z',
        ...over,
      });
    const stuck = [waits('a', { diagnosis }), waits('b', { diagnosis, phase: 'Ready' })];
    const fine = [
      waits('new', { diagnosis: { ...diagnosis, from: '2026-11-21T12:00:30Z' } }),
      waits('waits', { diagnosis: { cause: causeOf('WaitsFor'), slot: 'deployment' } }),
      waits('off', { diagnosis: { cause: causeOf('Paused') }, phase: 'Paused' }),
      waits('goes', { message: 'is being deleted', deletedAt: '2026-11-21T11:59:00Z' }),
    ];
    const groups = causesOf([...stuck, ...fine], now);
    expect(
      groups.map(({ cause, hits }) => [
        cause.code,
        hits.map(({ environment }) => environment.name),
      ]),
    ).toEqual([['Uncomposed', ['a', 'b']]]);
    expect(slowOf(stuck, now)).toEqual([]);
  });

  it('do not include an environment in creation', () => {
    for (const api of APIS) {
      for (const stage of ['nothing', 'half-way', 'ready'] as const) {
        const one = world.add(api, {
          name: 'x',
          namespace: 'team',
          stage,
          ready: false,
          failed: false,
          createdAt: '2020-01-01T00:00:00Z',
        });
        expect(causesOf([{ ...one, phase: 'Provisioning' }], Date.now())).toEqual([]);
      }
    }
  });

  it('do not include a slow environment', () => {
    const now = Date.parse('2026-11-21T12:00:00Z');
    const at = (name: string, createdAt: string, over = {}) =>
      world.add('stock-pool', { name, namespace: 'team', stage: 'half-way', createdAt, ...over });
    const all = [
      at('new', '2026-11-21T11:45:00Z'),
      at('old', '2026-11-21T11:00:00Z'),
      at('off', '2026-11-21T11:00:00Z', { phase: 'ScaledToZero' }),
      at('stuck', '2026-10-01T00:00:00Z', { ready: true, deletedAt: '2026-11-21T10:00:00Z' }),
    ];
    expect(slowOf(all, now).map(({ name }) => name)).toEqual(['stuck', 'old']);
  });

  it('do not include an old environment with a recent change', () => {
    const now = Date.parse('2026-11-21T12:00:00Z');
    const view = world.add('application-environment', {
      name: 'shop',
      namespace: 'team',
      createdAt: '2026-10-01T00:00:00Z',
      ready: false,
    });
    const [first, ...rest] = view.parts;
    const resized = {
      ...view,
      parts: [{ ...first!, ready: false, since: '2026-11-21T11:59:00Z' }, ...rest],
    };
    expect(underWaySince(resized)).toBe('2026-11-21T11:59:00Z');
    expect(slowOf([resized], now)).toEqual([]);
    expect(slowOf([resized], now + 3_600_000)).toEqual([resized]);
  });
});

it('history shows the newest event first', () => {
  const view = new World().add('gpu-workspace', {
    name: 'ada',
    namespace: 'team',
    createdAt: '2026-11-21T10:00:00Z',
  });
  const parts = view.parts
    .filter(({ kind }) => kind !== 'Usage')
    .slice(0, 2)
    .map((part, index) => ({ ...part, since: `2026-11-21T10:0${index + 1}:00Z` }));
  expect(historyOf({ ...view, parts }).map(({ title }) => title)).toEqual([
    'All resources are ready',
    'Instance became ready',
    'Egress became ready',
    'Created by ada@acme.io',
  ]);
});

describe('words', () => {
  it.each([
    ['sshPublicKeys', 'SSH public keys'],
    ['instanceType', 'Instance type'],
    ['allowedCidrs', 'Allowed CIDRs'],
    ['repoURL', 'Repository URL'],
    ['security-group', 'Security group'],
    ['opencvVersion', 'OpenCV version'],
    ['gpu', 'GPU'],
    ['InvalidSpec', 'Invalid spec'],
  ])('%s is %s', (name, words) => {
    expect(toLabel(name)).toBe(words);
  });

  it.each([
    [3, 'just now'],
    [-50, 'just now'],
    [25, '25 sec ago'],
    [60, '1 min ago'],
    [3599, '59 min ago'],
    [7200, '2 hr ago'],
    [86_400 * 3, '3 days ago'],
    [86_400 * 400, '1 yr ago'],
  ])('%d seconds are %s', (seconds, words) => {
    expect(ago(0, seconds * 1000)).toBe(words);
  });

  it.each([
    ['UTC', '3 Feb 2026, 09:05:00 UTC'],
    ['Asia/Kolkata', '3 Feb 2026, 14:35:00 UTC+05:30'],
    ['America/St_Johns', '3 Feb 2026, 05:35:00 UTC-03:30'],
  ])('a time in %s is %s', (zone, words) => {
    vi.stubEnv('TZ', zone);
    expect(exactly(Date.parse('2026-02-03T09:05:00Z'))).toBe(words);
  });

  it('counts', () =>
    expect([
      count(0, 'part'),
      count(1, 'part'),
      count(999, 'part'),
      count(1_234_567, 'part'),
    ]).toEqual(['0 parts', '1 part', '999 parts', '1,234,567 parts']));
});

describe('changes', () => {
  const before = { a: { b: 1, c: [1, 2] }, d: 'x' };
  it('are found field by field, and applied to other data', () => {
    const mine = differences(before, { a: { b: 2, c: [1, 2] }, e: { f: true } });
    expect(mine).toEqual([
      { path: ['a', 'b'], value: 2 },
      { path: ['d'], value: undefined },
      { path: ['e'], value: { f: true } },
    ]);
    expect(changed({ a: { b: 1, c: [9] }, d: 'x', g: 1 }, mine)).toEqual({
      a: { b: 2, c: [9] },
      e: { f: true },
      g: 1,
    });
    expect(before).toEqual({ a: { b: 1, c: [1, 2] }, d: 'x' });
  });
});

describe('names and values', () => {
  it.each([
    '',
    'info',
    ' a ',
    'one\ntwo',
    '-----BEGIN-----\nMIIB==\nA=b\n',
    'a\r\nb',
    '\ttab',
    '"',
    '""',
    '"a"',
    '"a" and "b"',
    '"a',
    '{"b": "c=d"}',
    'c:\\new',
    '\u2028',
  ])('are read as they were written: %j', (value) => {
    const pairs = { FIRST: value, LAST: 'info' };
    expect(readPairs(writePairs(pairs))).toEqual(pairs);
  });

  it('are written unchanged if they fit on a line', () => {
    expect(writePairs({ A: 'b=c d', B: '"x' })).toBe('A=b=c d\nB="x');
    expect(writePairs({ A: 'one\ntwo' })).toBe(String.raw`A="one\ntwo"`);
  });

  it('are rejected with a repeated name', () => {
    expect(() => readPairs('A=1\nB=2\nA=3')).toThrow('Line 3: A is defined twice');
  });
});

it('the server’s fields are read in all their forms', () => {
  const fields = [
    'spec.parameters.diskGB',
    'spec.backend.env[A.B]',
    'spec.keys[0]',
    'metadata.name',
    'spec',
  ].map((field) => ({ field, message: 'm' }));
  const { faults, others } = faultsOf(fields);
  expect(faults.map(({ path }) => path)).toEqual([
    ['parameters', 'diskGB'],
    ['backend', 'env', 'A', 'B'],
    ['keys', '0'],
    [],
  ]);
  expect(others.map(({ field }) => field)).toEqual(['metadata.name']);
});
