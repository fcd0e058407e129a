import { groupOf, type OfKind } from '../kinds/metadata';
import { twinsAtom } from '../state/session';
import { useKindMetadata } from '../state/useKindMetadata';
import { useValue } from '../state/useValue';

/** The title of an environment's kind, with its group if two groups have a kind of that title. */
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
