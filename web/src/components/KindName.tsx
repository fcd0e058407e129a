import { groupOf, type OfKind } from '../kinds/metadata';
import { twinsAtom } from '../state/session';
import { useKindMetadata } from '../state/useKindMetadata';
import { useValue } from '../state/useValue';

/**
 * What people call an environment's kind; where two groups serve one that is called so, with its
 * group.
 */
export function KindName({ of }: { of: OfKind }) {
  const { title } = useKindMetadata(of);
  const isTwin = useValue(twinsAtom, (twins) => twins.has(title));
  return (
    <>
      {title}
      {isTwin && (
        <>
          {' '}
          <span className="whole-word">({groupOf(of.apiVersion)})</span>
        </>
      )}
    </>
  );
}
