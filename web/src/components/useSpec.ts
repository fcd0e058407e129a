import { useMemo, useState } from 'react';
import { Refused, type FieldError } from '../api/problem';
import { pruned, type Data, type Schema } from '../kinds/schema';
import { PRIVATE_KEY, privateKeysIn } from '../kinds/secrets';
import { faultsIn, faultsOf, type Fault } from '../kinds/validate';

/**
 * The state of a spec in a form: its data, its errors, and the errors to show already. `offering` is
 * the schema with the known values of fields, which arrive later.
 */
export function useSpec(schema: Schema, first: Data, offering: Schema = schema) {
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
      faultsIn(offering, spec).filter(({ path }) => !secret.some((one) => isBelow(path, one.path))),
    [offering, spec, secret],
  );
  const valid = own.length === 0 && secret.length === 0;
  const theirs = refused?.of === spec ? refused.faults : [];
  // Leaving a list also leaves its entries.
  const told = own.filter(
    ({ path }) => tried || path.some((_, index) => left.has(path.slice(0, index + 1).join('.'))),
  );
  return {
    data,
    spec,
    valid,
    // A private key is reported immediately, even before its field loses the focus.
    faults: [...secret, ...told, ...theirs],
    /** The server's errors that do not belong to a field of the spec. */
    others: refused?.of === spec ? refused.others : [],
    change: setData,
    leave: (path: string[]) => setLeft((before) => new Set([...before, path.join('.')])),
    /** Shows all errors. Returns whether the spec is valid. */
    check: () => {
      setTried(true);
      return valid;
    },
    /** Shows the server's errors at their fields, until the spec changes. */
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
 * Scrolls to the first field with an error and focuses it. Without such a field, scrolls to the
 * error message.
 */
export function goToFirstError(): void {
  requestAnimationFrame(() => {
    const field = document.querySelector<HTMLElement>('main [aria-invalid="true"]');
    field?.closest('details')?.setAttribute('open', '');
    field?.focus();
    (field ?? document.querySelector('main [role="alert"]'))?.scrollIntoView({ block: 'center' });
  });
}
