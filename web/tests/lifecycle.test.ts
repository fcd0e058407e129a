import { describe, expect, it } from 'vitest';
import type { Environment } from '../src/api/schema';
import { historyOf } from '../src/kinds/history';
import {
  endOf,
  extensionsOf,
  hasBanner,
  isHeld,
  MAXIMUM,
  NEVER,
  requestsOf,
  secondsOf,
} from '../src/kinds/lifecycle';
import { toneOf } from '../src/kinds/tone';
import {
  amountOf,
  costsBy,
  dollars,
  isNotCreated,
  priceNow,
  priceWords,
  sumOf,
  sumWords,
} from '../src/kinds/prices';
import { between, until } from '../src/kinds/format';
import type { Stage } from './data';
import { World } from './world';

const AT = '2026-01-01T18:00:00Z';
const LATER = '2026-01-15T18:00:00Z';

const workspace = (over: Partial<Environment> & { stage?: Stage } = {}): Environment =>
  new World().add('gpu-workspace', {
    name: 'ada',
    namespace: 'team-vision',
    power: 'Running',
    lifecycle: { expiresAt: AT, onExpiry: 'Stop' },
    ...over,
  });

describe('the time that is left', () => {
  it.each([
    [0, ''],
    [-5, ''],
    [20, 'under 1 min'],
    [90, '1 min'],
    [3_599, '59 min'],
    [3_600, '1 hr'],
    [11_520, '3 hr 12 min'],
    [40_000, '11 hr'],
    [172_800, '2 days'],
    [1_209_600, '14 days'],
  ])('of %d seconds is %j', (seconds, words) => {
    expect(until(seconds * 1000, 0)).toBe(words);
  });

  it('is empty for a time that cannot be read', () => {
    expect(until(NaN, 0)).toBe('');
  });

  it('between two times is rounded to a minute', () => {
    const from = Date.parse(AT);
    expect([20, 3_598, 28_802].map((seconds) => between(from, from + seconds * 1000))).toEqual([
      'under 1 min',
      '1 hr',
      '8 hr',
    ]);
  });
});

describe('the next end', () => {
  it('is the stop of a running environment', () => {
    expect(endOf(workspace())).toEqual({ at: AT, action: 'stops' });
    for (const onExpiry of ['Mark', undefined])
      expect(endOf(workspace({ lifecycle: { expiresAt: AT, onExpiry } }))).toEqual({
        at: AT,
        action: 'expires',
      });
  });

  it('is the deletion of a stopped environment', () => {
    const lifecycle = { expiresAt: AT, deletesAt: LATER, onExpiry: 'Stop' };
    expect(endOf(workspace({ lifecycle }))).toEqual({ at: AT, action: 'stops' });
    const end = { at: LATER, action: 'is deleted' };
    expect(endOf(workspace({ lifecycle, power: 'Stopped' }))).toEqual(end);
  });

  it('is the stop of an environment that is kept for a few minutes', () => {
    const lifecycle = { expiresAt: AT, deletesAt: '2026-01-01T18:10:00Z', onExpiry: 'Stop' };
    expect(endOf(workspace({ lifecycle }))).toEqual({ at: AT, action: 'stops' });
  });

  it('is the deletion of a running environment, although it is long after the expiry', () => {
    for (const deletesAt of [AT, LATER]) {
      const lifecycle = { expiresAt: AT, deletesAt, onExpiry: 'Delete' };
      expect(endOf(workspace({ lifecycle }))).toEqual({ at: deletesAt, action: 'is deleted' });
    }
  });

  it('is absent without a time to live, for older revisions and during a deletion', () => {
    expect(endOf(workspace({ lifecycle: {} }))).toBeUndefined();
    expect(endOf(workspace({ lifecycle: undefined }))).toBeUndefined();
    expect(endOf(workspace({ power: 'Stopped' }))).toBeUndefined();
    expect(endOf(workspace({ deletedAt: AT }))).toBeUndefined();
  });
});

describe('requests', () => {
  const none = { extend: false, stop: false, start: false };

  it('depend on the power state', () => {
    expect(requestsOf(workspace())).toEqual({ extend: true, stop: true, start: false });
    expect(requestsOf(workspace({ power: 'Stopped' }))).toEqual({
      extend: true,
      stop: false,
      start: true,
    });
    expect(requestsOf(workspace({ power: 'Unknown' })).start).toBe(true);
    expect(requestsOf(workspace({ lifecycle: {} })).extend).toBe(false);
    expect(requestsOf(workspace({ cannotStop: 'it is a vcluster' })).stop).toBe(false);
  });

  it('are not offered where they have no effect', () => {
    expect(requestsOf(workspace({ paused: true }))).toEqual(none);
    expect(requestsOf(workspace({ deletedAt: AT }))).toEqual(none);
    expect(requestsOf(workspace({ lifecycle: undefined }))).toEqual(none);
  });

  it('do not end a paused environment, unless only its claim is paused', () => {
    expect(isHeld({ paused: true }, false)).toBe(true);
    expect(isHeld({ paused: true }, true)).toBe(false);
    expect(isHeld({ paused: false }, false)).toBe(false);
  });

  it('have a banner near the end, while stopped and while paused', () => {
    const expiring = { reason: 'Expiring', message: 'ada is stopped soon' };
    expect(hasBanner(workspace())).toBe(false);
    expect(hasBanner(workspace({ expiring }))).toBe(true);
    expect(hasBanner(workspace({ power: 'Stopping' }))).toBe(true);
    expect(hasBanner(workspace({ paused: true }))).toBe(true);
    expect(hasBanner(workspace({ expiring, deletedAt: AT }))).toBe(false);
  });
});

describe('extensions', () => {
  const now = Date.parse(AT) - 2 * 3_600_000;
  const values = (over: Partial<Environment>) =>
    extensionsOf(workspace(over), now).map(({ value }) => value);

  it('move the end', () => {
    expect(values({})).toEqual(['4h', '8h', '1d', '3d', '1w', '2w', NEVER]);
    expect(values({ lifecycle: { expiresAt: LATER } })).toEqual([NEVER]);
  });

  it('end with the maximum of Settings', () => {
    expect(values({ lifecycle: { expiresAt: AT, maximum: '1d' } })).toEqual(['4h', '8h', MAXIMUM]);
    expect(values({ lifecycle: { expiresAt: AT, maximum: '3h' } })).toEqual([MAXIMUM]);
    expect(values({ lifecycle: { expiresAt: AT, maximum: '90m' } })).toEqual([]);
  });

  it('read durations as the function does', () => {
    expect(['30m', '8h', '2w', 'never', '8', '0s', '', null].map(secondsOf)).toEqual([
      1_800,
      28_800,
      1_209_600,
      undefined,
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
  });
});

describe('prices', () => {
  const price = { hourlyUSD: '0.542', stoppedHourlyUSD: '0.011', asOf: '2026-07-20' };

  it('are unknown rather than 0', () => {
    expect([undefined, null, '', 'free', '-1', '1e3'].map(amountOf)).toEqual(
      Array(6).fill(undefined),
    );
    expect([amountOf('0'), amountOf('12'), amountOf('0.0115')]).toEqual([0, 12_000, 12]);
    expect(priceNow(workspace())).toBeUndefined();
    expect(priceWords(undefined)).toBe('Price unknown');
  });

  it('depend on the power state', () => {
    expect(priceNow(workspace({ price }))).toBe(542);
    expect(priceNow(workspace({ price, power: 'Stopped' }))).toBe(11);
    expect(priceNow(workspace({ price, power: 'Stopping' }))).toBe(542);
    expect(priceWords(price)).toBe(
      'About $0.542 per hour, $0.011 while stopped (prices of 2026-07-20)',
    );
  });

  it('are those of a stopped environment while a start fails', () => {
    const refused = workspace({ price, stage: 'failing', power: 'Starting' });
    const parts = refused.parts.map((part) => ({ ...part, externalName: 'i-1' }));
    expect([priceNow({ ...refused, parts }), isNotCreated({ ...refused, parts })]).toEqual([
      11,
      false,
    ]);
    expect(isNotCreated(refused)).toBe(true);
    expect(isNotCreated({ ...refused, failed: false })).toBe(false);
    expect(sumOf([refused, workspace({ price })])).toEqual({
      environments: 2,
      amount: 542,
      unknown: 0,
      notCreated: 1,
    });
  });

  it('are written in dollars', () => {
    expect([0, 11, 500, 1_204_500, 114_000].map(dollars)).toEqual([
      '$0.00',
      '$0.011',
      '$0.50',
      '$1,204.50',
      '$114.00',
    ]);
  });

  it('add up exactly, and say how many are missing', () => {
    const tenth = { hourlyUSD: '0.1' };
    const all = [
      ...Array.from({ length: 3 }, () => workspace({ price: tenth, owner: 'ada' })),
      workspace({ price, power: 'Stopped', owner: 'grace' }),
      workspace({ owner: 'grace' }),
      workspace({ owner: 'linus' }),
    ];
    const costs = costsBy(all, ({ owner }) => owner!);
    expect(costs.map((cost) => [cost.name, sumWords(cost), sumWords(cost.stopped)])).toEqual([
      ['ada', '$0.30', '$0.00'],
      ['grace', '$0.011 + 1 unknown', '$0.011'],
      ['linus', 'Unknown', '$0.00'],
    ]);
    expect(sumWords(sumOf(all))).toBe('$0.311 + 2 unknown');
    expect(sumWords(sumOf([]))).toBe('$0.00');
  });
});

it('shows no stopped or expired environment as ready or slow', () => {
  expect(toneOf(workspace({ phase: 'Stopped' }))).toBe('idle');
  expect(toneOf(workspace({ phase: 'Expired' }))).toBe('busy');
  expect(toneOf(workspace({ phase: 'Starting' }))).toBe('busy');
});

it('dates warnings and stops in the timeline', () => {
  const lifecycle = {
    warnedAt: '2026-01-01T17:30:00Z',
    stoppedAt: AT,
    stopReason: 'Expired',
  };
  const titles = historyOf(workspace({ lifecycle, createdAt: '2026-01-01T10:00:00Z' }))
    .filter(({ at }) => at > '2026-01-01T12')
    .map(({ title }) => title);
  expect(titles).toEqual(['Stopped at the end of its time to live', 'Warning of the end']);
});
