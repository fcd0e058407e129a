import { Button, Loader } from '@mantine/core';
import { useEffect, useState } from 'react';
import { mayBeDone, words } from '../api/problem';
import type { Previewed, Resource } from '../api/schema';
import { isHelper } from '../kinds/tree';
import { count } from '../kinds/words';
import type { Asked } from '../state/asked';
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

/** What would be made. While a new answer is on its way the last one stays. */
export function Preview({ asked, ready }: { asked: Asked<Previewed>; ready: boolean }) {
  const { data, error, pending, again } = asked;
  // Ahead: a page that has to be loaded again for it loses what was typed beside.
  useEffect(() => whenIdle(() => void Documents.load()), []);
  const parts = data?.parts.filter((part) => !isHelper(part)) ?? [];
  return (
    <section className="panel preview" aria-labelledby="preview">
      <div className="secrets-head">
        <h2 id="preview">What it will be</h2>
        {ready && pending && <Loader size="xs" color="gray" aria-hidden="true" />}
      </div>
      <div role="status">
        {ready && error !== undefined ? (
          <>
            <p className="refused">{words(error)}</p>
            {mayBeDone(error) && (
              <Button size="compact-sm" variant="default" onClick={again}>
                Try again
              </Button>
            )}
          </>
        ) : (
          <p className="small">
            {!ready ? (data ? 'As it was before: fill in what is needed to see it anew.' : 'Fill in what is needed, and see here what will be made.') : data ? `${count(parts.length, 'part')}, by the Composition ${data.composition}.` : ''}
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
          <Tree parts={parts} planned />
          {data.resources.length > 0 && <Manifests resources={data.resources} />}
        </div>
      )}
    </section>
  );
}

const Documents = onDemand(() => import('./Documents'));

function Manifests({ resources }: { resources: readonly Resource[] }) {
  const [open, setOpen] = useState(false);
  return (
    <details className="more" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>What is made at once, as YAML</summary>
      {open && (
        <Loaded>
          <Documents documents={resources.map(({ manifest }) => manifest)} label="What is made at once" />
        </Loaded>
      )}
    </details>
  );
}
