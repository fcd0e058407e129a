import { SegmentedControl, Skeleton } from '@mantine/core';
import { useMemo, useState } from 'react';
import { answer, api } from '../api/client';
import type { Environment } from '../api/schema';
import { forGit } from '../kinds/forGit';
import { placeOf } from '../kinds/paths';
import { writeYaml } from '../kinds/yaml';
import { Copy } from '../components/Copy';
import { ProblemAlert } from '../components/ProblemAlert';
import { useRequest } from '../state/useRequest';

const FORMS = [
  { value: 'git', label: 'For Git' },
  { value: 'cluster', label: 'As in the cluster' },
] as const;
type Form = (typeof FORMS)[number]['value'];

/** The object from the API server as YAML. It is read again after every change. */
export default function Yaml({ environment }: { environment: Environment }) {
  const [form, setForm] = useState<Form>('git');
  const { data, error, again } = useRequest(
    `${environment.uid} ${environment.resourceVersion}`,
    () =>
      answer(
        api.GET('/api/v1/environments/{namespace}/{kind}/{name}', {
          params: { path: placeOf(environment) },
        }),
      ),
  );
  const text = useMemo(
    () => data && writeYaml(form === 'git' ? forGit(data.object) : data.object),
    [data, form],
  );
  if (error !== undefined)
    return <ProblemAlert title="Could not load the YAML" error={error} again={again} />;
  if (text === undefined) return <Skeleton height={400} />;
  return (
    <div className="stack">
      <SegmentedControl
        className="groups"
        aria-label="Form of the YAML"
        value={form}
        onChange={(value) => setForm(value)}
        data={[...FORMS]}
      />
      <div className="yaml">
        <Copy text={text} what="the YAML" />
        {/* Scrollable text must be reachable by keyboard. */}
        {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
        <pre tabIndex={0} aria-label="YAML">
          {text}
        </pre>
      </div>
    </div>
  );
}
