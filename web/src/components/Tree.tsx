import type { Part } from '../api/schema';
import { toneOfPart } from '../kinds/tone';
import { nameOf, treeOf, type Node } from '../kinds/tree';
import { count, toLabel } from '../kinds/format';
import { Ago } from './Ago';
import { CauseWords } from './CauseWords';
import { Copy } from './Copy';
import { Fold } from './Fold';
import { Dot } from './Pill';

interface Props {
  parts: readonly Part[];
  leaving?: boolean;
  /** A preview has no resources yet, so there is no state to show. */
  planned?: boolean;
}

/** The resources of an environment, as a tree with the state of each. */
export function Tree({ parts, leaving = false, planned = false }: Props) {
  return <Branch nodes={treeOf(parts)} leaving={leaving} planned={planned} label="Resources" />;
}

interface BranchProps {
  nodes: readonly Node[];
  leaving: boolean;
  planned: boolean;
  label?: string;
}

function Branch({ nodes, leaving, planned, label }: BranchProps) {
  return (
    <ul className="tree" aria-label={label}>
      {nodes.map((node) => (
        <li key={node.name} className={node.part ? undefined : 'branch'}>
          {node.helpers ? (
            <Helpers node={node} leaving={leaving} planned={planned} />
          ) : (
            <>
              {node.part ? (
                <Leaf part={node.part} leaving={leaving} planned={planned} />
              ) : (
                <p className="branch-name">{toLabel(node.name)}</p>
              )}
              {node.children.length > 0 && (
                <Branch nodes={node.children} leaving={leaving} planned={planned} />
              )}
            </>
          )}
        </li>
      ))}
    </ul>
  );
}

/** Helper resources are collapsed unless one of them has failed. */
function Helpers({ node, leaving, planned }: { node: Node; leaving: boolean; planned: boolean }) {
  const wrong = node.children.some(({ part }) => part && toneOfPart(part) === 'bad');
  return (
    <Fold
      className="helpers"
      wrong={wrong}
      summary={<>{count(node.children.length, 'internal resource')}</>}
    >
      <Branch nodes={node.children} leaving={leaving} planned={planned} />
    </Fold>
  );
}

function Leaf({ part, leaving, planned }: { part: Part; leaving: boolean; planned: boolean }) {
  const { kind, ready, reason, since, message, cause } = part;
  const tone = planned ? 'idle' : toneOfPart(part, leaving);
  const word = reason ?? (leaving ? 'Not deleted yet' : ready ? 'Ready' : 'Pending');
  return (
    <div className="leaf" data-tone={tone}>
      <div className="leaf-head">
        {!planned && <Dot tone={tone} word={word} />}
        <span className="leaf-names">
          <span className="leaf-name">{nameOf(part)}</span> <span className="small">{kind}</span>
        </span>
        {!planned && (
          <span className="leaf-state small">
            <span aria-hidden="true">{word}</span> <Ago at={since} />
          </span>
        )}
      </div>
      {!planned && (tone !== 'bad' || part.externalName) && (
        <LeafLine
          part={part}
          says={ready || tone === 'bad' ? undefined : (cause?.headline ?? message)}
        />
      )}
      {tone === 'bad' && cause && <CauseWords cause={cause} />}
      {tone === 'bad' && message && <Message words={message} folded={Boolean(cause)} />}
    </div>
  );
}

/** The message of a provider. Below a cause it is collapsed, because it is long and technical. */
function Message({ words, folded }: { words: string; folded: boolean }) {
  const quote = <blockquote className="words">{words}</blockquote>;
  if (!folded) return quote;
  return (
    <Fold className="more" summary="Message of the provider">
      {quote}
    </Fold>
  );
}

/**
 * The id of a resource, once it exists, and the reason for waiting. The element is always present,
 * so that no element below moves.
 */
function LeafLine({ part, says }: { part: Part; says: string | null | undefined }) {
  const { externalName } = part;
  return (
    <p className="leaf-line">
      {externalName && (
        <>
          <code className="code cut" title={externalName}>
            {externalName}
          </code>
          <Copy text={externalName} what={`the id of ${nameOf(part)}`} />
        </>
      )}
      {says && (
        <span className="small cut" title={says}>
          {says}
        </span>
      )}
    </p>
  );
}
