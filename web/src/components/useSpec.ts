import { useMemo, useState } from 'react';
import { Refused, type FieldError } from '../api/problem';
import { pruned, type Data, type Schema } from '../kinds/schema';
import { PRIVATE_KEY, privateKeysIn } from '../kinds/secrets';
import { faultsIn, faultsOf, type Fault } from '../kinds/validate';

/**
 * A spec that is being written: its data, what is wrong with it, and what of that may be said
 * already.
 */
export function useSpec(schema: Schema, first: Data) {
  const [data, setData] = useState(first);
  const [left, setLeft] = useState<ReadonlySet<string>>(new Set());
  const [tried, setTried] = useState(false);
  const [refused, setRefused] = useState<Refusal>();
  const spec = useMemo(() => pruned(schema, data), [schema, data]);
  const secret = useMemo(
    () => privateKeysIn(spec).map((path): Fault => ({ path, message: PRIVATE_KEY })),
    [spec],
  );
  const own = useMemo(
    () =>
      faultsIn(schema, spec).filter(({ path }) => !secret.some((one) => isBelow(path, one.path))),
    [schema, spec, secret],
  );
  const valid = own.length === 0 && secret.length === 0;
  const theirs = refused?.of === spec ? refused.faults : [];
  // Who leaves a list leaves its entries.
  const told = own.filter(
    ({ path }) => tried || path.some((_, index) => left.has(path.slice(0, index + 1).join('.'))),
  );
  return {
    data,
    spec,
    valid,
    // A private key is named at once, whether its field was left or not.
    faults: [...secret, ...told, ...theirs],
    /** What the server refused that is no field of the spec. */
    others: refused?.of === spec ? refused.others : [],
    change: setData,
    leave: (path: string[]) => setLeft((before) => new Set([...before, path.join('.')])),
    /** Says everything that is wrong; answers whether nothing is. */
    check: () => {
      setTried(true);
      return valid;
    },
    /** The server's words go to their fields, and stay until the spec is another. */
    refuse: (error: unknown) => {
      if (error instanceof Refused) setRefused({ of: spec, ...faultsOf(error.fields) });
    },
  };
}

function isBelow(path: readonly string[], above: readonly string[]): boolean {
  return above.every((step, index) => path[index] === step);
}

interface Refusal {
  of: Data;
  faults: Fault[];
  others: FieldError[];
}

/**
 * Brings the first field with an error before the eyes, and the keyboard to it; where no field is
 * to blame, what is said above them.
 */
export function goToFirstError(): void {
  requestAnimationFrame(() => {
    const field = document.querySelector<HTMLElement>('main [aria-invalid="true"]');
    field?.closest('details')?.setAttribute('open', '');
    field?.focus();
    (field ?? document.querySelector('main [role="alert"]'))?.scrollIntoView({ block: 'center' });
  });
}
