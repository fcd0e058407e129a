import { describe, expect, it } from 'vitest';
import { databaseUrl, isSecret, machineName } from '../src/kinds/connections';
import { forGit } from '../src/kinds/forGit';
import { faultsIn } from '../src/kinds/validate';
import { stillOffering, withOptions, type Schema } from '../src/kinds/schema';
import { monthly } from '../src/kinds/prices';

describe('connections', () => {
  it('connection string has the keys of each API, and masks the password', () => {
    const shared = databaseUrl({
      endpoint: 'db.acme.io',
      port: '5433',
      username: 'app',
      password: 'a/b c',
      database: 'shop',
    });
    expect(shared).toEqual({
      whole: 'postgresql://app:a%2Fb%20c@db.acme.io:5433/shop',
      masked: 'postgresql://app:••••••••@db.acme.io:5433/shop',
    });
    const own = databaseUrl({
      db_address: 'fd00::1',
      db_user: 'u',
      db_password: 'p',
      db_name: 'n',
    });
    expect(own?.whole).toBe('postgresql://u:p@[fd00::1]:5432/n');
    expect(databaseUrl({ kubeconfig: 'x' })).toBeUndefined();
  });

  it('secrets are passwords and kubeconfigs, not hosts', () => {
    expect(['db_password', 'password', 'kubeconfig'].map(isSecret)).not.toContain(false);
    expect(['db_host', 'port', 'user', 'instanceId'].map(isSecret)).not.toContain(true);
  });

  it('machine has the name of the SSH configuration', () => {
    expect(machineName({ name: 'ada', namespace: 'team-vision' })).toBe('ada.team-vision.paved');
  });
});

describe('YAML for Git', () => {
  it('has the fields of the user without those of the cluster', () => {
    const object = {
      apiVersion: 'platform.acme.io/v1alpha1',
      kind: 'StockPool',
      metadata: {
        name: 'a',
        namespace: 'team',
        uid: 'u',
        resourceVersion: '7',
        creationTimestamp: 'now',
        finalizers: ['finalizer.apiextensions.crossplane.io'],
        managedFields: [],
        labels: { owner: 'ada', 'crossplane.io/claim-name': 'a' },
        annotations: { 'paved-road.fn.crossplane.io/renewed-at': 'x' },
      },
      spec: {
        replicas: 1,
        resourceRef: { name: 'a-x' },
        compositionRef: { name: 'mine' },
        crossplane: { resourceRefs: [], compositionRef: { name: 'mine' } },
      },
      status: { phase: 'Ready' },
    };
    expect(forGit(object)).toEqual({
      apiVersion: 'platform.acme.io/v1alpha1',
      kind: 'StockPool',
      metadata: { name: 'a', namespace: 'team', labels: { owner: 'ada' } },
      spec: {
        replicas: 1,
        compositionRef: { name: 'mine' },
        crossplane: { compositionRef: { name: 'mine' } },
      },
    });
  });
});

describe('offers', () => {
  const schema: Schema = {
    type: 'object',
    properties: {
      region: { type: 'string', pattern: '^[a-z]+-[a-z]+-[0-9]$' },
      code: { type: 'string', pattern: '^[0-9]+$', 'x-pattern-in-words': 'digits' },
    },
  };
  const offering = withOptions(schema, [
    { field: 'spec.region', closed: true, options: [{ value: 'us-east-1' }] },
  ]);

  it('value outside the offer has one error in words', () => {
    for (const region of ['us-esat-1', 'us_east_1']) {
      const message = `${region} is not offered. Choose us-east-1.`;
      expect(faultsIn(offering, { region })).toEqual([{ path: ['region'], message }]);
    }
    expect(faultsIn(offering, { region: 'us-east-1' })).toEqual([]);
  });

  it('pattern is reported in words', () => {
    expect(faultsIn(offering, { code: 'x' })).toEqual([
      { path: ['code'], message: 'Allowed: digits' },
    ]);
  });

  it('current value stays allowed', () => {
    const current = { region: 'eu-west-1' };
    expect(faultsIn(stillOffering(offering, current), current)).toEqual([]);
  });
});

describe('prices', () => {
  it('month has 730 hours', () => {
    expect(monthly(1_000)).toBe('$730');
    expect(monthly(2_500_000)).toBe('$1,825,000');
  });
});
