import { groupOf, type OfKind } from '../kinds/metadata';
import { twinsAtom } from '../state/session';
import { useKindMetadata } from '../state/useKindMetadata';
import { useValue } from '../state/useValue';

/**
 * The title of an environment's kind. Where two groups have a kind of that title, the kind that the
 * portal does not offer for new environments also has its group.
 */
export function KindName({ of }: { of: OfKind }) {
  const { title, offered } = useKindMetadata(of);
  const isTwin = useValue(twinsAtom, (twins) => twins.has(title));
  return (
    <>
      {title}
      {isTwin && !offered && (
        <>
          {' '}
          <span className="whole-word">({groupOf(of.apiVersion)})</span>
        </>
      )}
    </>
  );
}
