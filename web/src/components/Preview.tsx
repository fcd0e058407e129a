import { Button, Loader } from '@mantine/core';
import { useEffect, useState, type ReactNode } from 'react';
import {
  isMarked,
  isRejected,
  mayBeDone,
  overBudget,
  words,
  type FieldError,
  type Refused,
} from '../api/problem';
import type { Previewed, PreviewedChange, Resource } from '../api/schema';
import { amountOf, hourly, priceWords } from '../kinds/prices';
import { isHelper, nameOf } from '../kinds/tree';
import { between, count } from '../kinds/format';
import { useRequest, type RequestState } from '../state/useRequest';
import { Loaded, onDemand, whenIdle } from './onDemand';
import { Tree } from './Tree';

/** The value, after it has not changed for this time. */
export function useSettled<T>(value: T, milliseconds: number): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), milliseconds);
    return () => clearTimeout(timer);
  }, [value, milliseconds]);
  return settled;
}

/** A preview with the error of a price that exceeds the budget. */
interface Budgeted {
  overBudget?: FieldError | null;
}

/** A preview that follows a document, after the user has stopped typing for a moment. */
export function usePreview<D, T extends Budgeted>(
  document: D | undefined,
  ask: (document: D, signal?: AbortSignal) => Promise<T>,
): {
  preview: RequestState<T>;
  refused: (now: D) => Promise<Refused | undefined>;
} {
  const settled = useSettled(document, 400);
  const preview = useRequest(settled && JSON.stringify(settled), (signal) => ask(settled!, signal));
  return {
    preview,
    /**
     * Why this exact document would be rejected. Sends a request if the preview does not know. A
     * failed preview does not count as a rejection.
     */
    refused: async (now) => {
      if (settled === now && !preview.pending && preview.error !== undefined)
        return isRejected(preview.error) ? preview.error : undefined;
      try {
        const known = settled === now && !preview.pending ? preview.data : undefined;
        const { overBudget: excess } = known ?? (await ask(now));
        return excess ? overBudget(excess) : undefined;
      } catch (error) {
        return isRejected(error) ? error : undefined;
      }
    },
  };
}

interface Props<T> {
  asked: RequestState<T>;
  /** Whether the form is complete. */
  ready: boolean;
  /** The message while the form is incomplete, and the summary of a response. */
  incomplete: string;
  summary: (data: T) => string;
  children: (data: T) => ReactNode;
}

/** A preview next to a form. The last response stays until the next one arrives. */
function Panel<T extends Budgeted & { notes: string[] }>({
  asked,
  ready,
  incomplete,
  summary,
  children,
}: Props<T>) {
  const { data, error, pending, again } = asked;
  const rejected = isRejected(error) && isMarked(error) ? error.fields.length : 0;
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
              {/* The form shows the errors at their fields. */}
              {rejected > 0
                ? `${count(rejected, 'field needs', 'fields need')} attention.`
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
        {ready && error === undefined && data?.overBudget && (
          <p className="refused">This would exceed the budget: {data.overBudget.message}</p>
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

/** A preview of a new environment, with the length of its life. */
export interface PreviewedLife extends Previewed {
  /** The time from the creation to the end, in words. Absent without a time to live. */
  life?: string;
}

/**
 * Adds the length of the life to a response that has just arrived. The response has the end of an
 * environment that is created at the time of the response, which is wrong for a later creation.
 */
export function withLife(previewed: Previewed): PreviewedLife {
  const { expiresAt } = previewed;
  const life = expiresAt ? between(Date.now(), Date.parse(expiresAt)) : undefined;
  return { ...previewed, life };
}

/** The price and the end of a new environment, in a few words. */
export function Hourly({ of: { price, life, overBudget } }: { of: PreviewedLife }) {
  return (
    <>
      {hourly(amountOf(price?.hourlyUSD))}
      {life && `, ends ${life} after its creation`}
      {overBudget && '. This would exceed the budget.'}
    </>
  );
}

/** The resources that would be created. */
export function Preview({ asked, ready }: { asked: RequestState<PreviewedLife>; ready: boolean }) {
  // Loaded ahead: if loading fails later, the user must reload the page and loses the input.
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
            {priceWords(data.price)}.{data.life && ` Ends ${data.life} after its creation.`}
          </p>
          <Tree parts={shown(data)} planned />
          {data.resources.length > 0 && <Manifests resources={data.resources} />}
        </>
      )}
    </Panel>
  );
}

/** The effects of a change. */
export function ChangePreview({
  asked,
  ready,
}: {
  asked: RequestState<PreviewedChange>;
  ready: boolean;
}) {
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
