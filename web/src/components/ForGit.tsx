import { useEffect, useState } from 'react';
import type { Document } from '../api/schema';
import { Loaded, onDemand, whenIdle } from './onDemand';

const Documents = onDemand(() => import('./Documents'));

/** The claim as YAML, to commit it instead of creating it here. */
export function ForGit({ document }: { document: Document }) {
  const [open, setOpen] = useState(false);
  useEffect(() => whenIdle(() => void Documents.load()), []);
  return (
    <details className="panel more" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>YAML for Git</summary>
      {open && (
        <Loaded>
          <Documents documents={[document]} label="The environment as YAML" />
        </Loaded>
      )}
    </details>
  );
}
