import { Button, Loader } from '@mantine/core';
import { useEffect, useState, type ReactNode } from 'react';
import { isRejected, mayBeDone, words, type Refused } from '../api/problem';
import type { Previewed, PreviewedChange, Resource } from '../api/schema';
import { priceWords } from '../kinds/prices';
import { isHelper, nameOf } from '../kinds/tree';
import { count } from '../kinds/words';
import { useAsked, type Asked } from '../state/asked';
import { Until } from './End';
import { Loaded, onDemand, whenIdle } from './onDemand';
import { Tree } from './Tree';

/** The same value, once it has stood still for a while. */
export function useSettled<T>(value: T, milliseconds: number): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), milliseconds);
    return () => clearTimeout(timer);
  }, [value, milliseconds]);
  return settled;
}

/** A preview that follows a document, once nobody has typed for a moment. */
export function usePreview<D, T>(
  document: D | undefined,
  ask: (document: D, signal?: AbortSignal) => Promise<T>,
): {
  preview: Asked<T>;
  refusal: Refused | undefined;
  refused: (now: D) => Promise<Refused | undefined>;
} {
  const settled = useSettled(document, 400);
  const preview = useAsked(settled && JSON.stringify(settled), (signal) => ask(settled!, signal));
  const refusal =
    document !== undefined && settled === document && isRejected(preview.error)
      ? preview.error
      : undefined;
  return {
    preview,
    /** Why this very document would be rejected, as far as it is known. */
    refusal,
    /**
     * The same, asked for now where it is not known yet. A preview that cannot be had says nothing
     * against the document.
     */
    refused: async (now) => {
      if (settled === now && !preview.pending)
        return isRejected(preview.error) ? preview.error : undefined;
      try {
        await ask(now);
        return undefined;
      } catch (error) {
        return isRejected(error) ? error : undefined;
      }
    },
  };
}

interface Props<T> {
  asked: Asked<T>;
  /** Whether the form is complete. */
  ready: boolean;
  /** What is said while it is not, and what of an answer. */
  incomplete: string;
  summary: (data: T) => string;
  children: (data: T) => ReactNode;
}

/** What would happen, beside a form. While a new answer is on its way the last one stays. */
function Panel<T extends { notes: string[] }>({
  asked,
  ready,
  incomplete,
  summary,
  children,
}: Props<T>) {
  const { data, error, pending, again } = asked;
  const rejected = isRejected(error) ? error.fields.length : 0;
  return (
    <section className="panel preview" aria-labelledby="preview">
      <div className="secrets-head">
        <h2 id="preview">Preview</h2>
        {ready && pending && <Loader size="xs" color="gray" aria-hidden="true" />}
      </div>
      <div role="status">
        {ready && error !== undefined ? (
          <>
            <p className="refused">
              {rejected > 0
                ? `${count(rejected, 'field needs', 'fields need')} attention: ${words(error)}`
                : words(error)}
            </p>
            {mayBeDone(error) && (
              <Button size="compact-sm" variant="default" onClick={again}>
                Try again
              </Button>
            )}
          </>
        ) : (
          <p className="small">
            {!ready
              ? data
                ? 'Outdated: complete the form to refresh the preview.'
                : incomplete
              : data
                ? summary(data)
                : ''}
          </p>
        )}
      </div>
      {data && (
        <div className={ready && error === undefined ? undefined : 'stale'}>
          {data.notes.map((note) => (
            <p key={note} className="note">
              {note}
            </p>
          ))}
          {children(data)}
        </div>
      )}
    </section>
  );
}

/** What would be created. */
export function Preview({ asked, ready }: { asked: Asked<Previewed>; ready: boolean }) {
  // Ahead: a page that has to be loaded again for it loses what was typed beside.
  useEffect(() => whenIdle(() => void Documents.load()), []);
  const shown = ({ parts }: Previewed) => parts.filter((part) => !isHelper(part));
  return (
    <Panel
      asked={asked}
      ready={ready}
      incomplete="Complete the required fields to see a preview."
      summary={(data) => `Creates ${count(shown(data).length, 'resource')}.`}
    >
      {(data) => (
        <>
          <p className="price">
            {priceWords(data.price)}.
            {data.expiresAt && (
              <>
                {' '}
                Ends <Until at={data.expiresAt} />.
              </>
            )}
          </p>
          <Tree parts={shown(data)} planned />
          {data.resources.length > 0 && <Manifests resources={data.resources} />}
        </>
      )}
    </Panel>
  );
}

/** What a change would do. */
export function ChangePreview({ asked, ready }: { asked: Asked<PreviewedChange>; ready: boolean }) {
  const summary = ({ changes }: PreviewedChange) =>
    changes.length === 0
      ? 'Changes no resources.'
      : `Changes ${count(changes.length, 'resource')}.`;
  return (
    <Panel
      asked={asked}
      ready={ready}
      incomplete="Change a field to see what the change does."
      summary={summary}
    >
      {({ changes, price }) => (
        <>
          <p className="price">After the change: {priceWords(price)}.</p>
          <ul className="changes" aria-label="Changed resources">
            {changes.map(({ slot, action, fields }) => (
              <li key={slot}>
                <strong>{nameOf({ slot })}</strong> <span className="small">{ACTIONS[action]}</span>
                {fields.length > 0 && (
                  <dl className="facts">
                    {fields.map(({ path, before, after }) => (
                      <div key={path}>
                        <dt>{path.replace(/^spec\.(forProvider\.)?/, '')}</dt>
                        <dd>
                          <span className="fact">
                            {before ?? 'not set'} → {after ?? 'removed'}
                          </span>
                        </dd>
                      </div>
                    ))}
                  </dl>
                )}
              </li>
            ))}
          </ul>
        </>
      )}
    </Panel>
  );
}

const ACTIONS: Record<PreviewedChange['changes'][number]['action'], string> = {
  create: 'is created',
  change: 'is changed',
  delete: 'is deleted',
};

const Documents = onDemand(() => import('./Documents'));

function Manifests({ resources }: { resources: readonly Resource[] }) {
  const [open, setOpen] = useState(false);
  return (
    <details className="more" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Show YAML</summary>
      {open && (
        <Loaded>
          <Documents
            documents={resources.map(({ manifest }) => manifest)}
            label="Resources as YAML"
          />
        </Loaded>
      )}
    </details>
  );
}
