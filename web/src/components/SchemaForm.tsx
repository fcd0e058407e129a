import Form from '@rjsf/core/lib/components/Form.js';
import type { ErrorSchema, FieldTemplateProps, ObjectFieldTemplateProps } from '@rjsf/utils';
import { createContext, useContext, useEffect, useMemo, type ReactNode } from 'react';
import { growing, isAdvanced, MAIN_GROUP, uiOf, type Data, type Schema } from '../kinds/schema';
import { errorSchema, messagesIn, validator, type Fault } from '../kinds/validate';
import {
  CheckboxWidget,
  Free,
  Lines,
  OptionalGroup,
  Pairs,
  SelectWidget,
  TextWidget,
  Yaml,
} from './fields';
import { Fold } from './Fold';
import { whenIdle } from './onDemand';

interface Props {
  schema: Schema;
  data: Data;
  faults: readonly Fault[];
  onChange: (data: Data) => void;
  /** Called when a field loses the focus. Its errors may be shown from now on. */
  onLeave: (path: string[]) => void;
  /** The current spec, if the form changes an existing environment. */
  current?: Data;
  /** Notes below fields, by the path of the field. */
  notes?: Notes;
}

/** Notes by the path of a field, for example `parameters.allowedCidrs`. */
export type Notes = Readonly<Record<string, ReactNode>>;

const NotesContext = createContext<Notes>({});

/** A form generated from the schema in the cluster. */
export function SchemaForm({
  schema,
  data,
  faults,
  onChange,
  onLeave,
  current,
  notes = NO_NOTES,
}: Props) {
  useEffect(() => whenIdle(() => void Yaml.load()), []);
  const shown = useMemo(() => (current ? growing(schema, current) : schema), [schema, current]);
  const ui = useMemo(
    () => ({ ...uiOf(shown, current), 'ui:submitButtonOptions': { norender: true } }),
    [shown, current],
  );
  const errors = useMemo(() => errorSchema(faults), [faults]);
  return (
    <NotesContext value={notes}>
      <Form<Data, Schema>
        tagName="div"
        className="schema-form"
        idPrefix="spec"
        idSeparator="."
        schema={shown}
        uiSchema={ui}
        formData={data}
        extraErrors={errors}
        validator={validator}
        showErrorList={false}
        experimental_defaultFormStateBehavior={DEFAULTS}
        templates={TEMPLATES}
        widgets={WIDGETS}
        fields={FIELDS}
        onChange={({ formData }) => onChange(formData ?? {})}
        onBlur={(id) => onLeave(id.split('.').slice(1))}
      />
    </NotesContext>
  );
}

/**
 * Fields show their own label, help and errors. Only errors of a whole group are shown here, above
 * the group.
 */
function FieldTemplate({
  children,
  hidden,
  schema,
  rawErrors = [],
}: FieldTemplateProps<Data, Schema>) {
  if (hidden) return <div hidden>{children}</div>;
  return (
    <>
      {schema.properties && rawErrors.length > 0 && (
        <p className="refused" role="alert">
          {rawErrors.join('; ')}
        </p>
      )}
      {children}
    </>
  );
}

/**
 * A group: required and common fields, then the others, collapsed. An error in the others opens
 * them.
 */
function ObjectFieldTemplate({
  properties,
  schema,
  uiSchema,
  fieldPathId,
  errorSchema: errors,
}: ObjectFieldTemplateProps<Data, Schema>) {
  const folded = (name: string) =>
    isAdvanced(name, schema.properties?.[name] ?? {}, schema.required?.includes(name) ?? false);
  const notes = useContext(NotesContext);
  const noteOf = (name: string) => notes[[...fieldPathId.path, name].join('.')];
  const first = properties.filter(({ name }) => !folded(name));
  const rest = properties.filter(({ name }) => folded(name));
  const wrong = rest.some(
    ({ name }) =>
      messagesIn((errors as Record<string, ErrorSchema> | undefined)?.[name]).length > 0,
  );
  const body = (
    <div className="fields">
      {first.map(({ name, content }) => (
        <div key={name} className="field" data-name={name}>
          {content}
          {noteOf(name)}
        </div>
      ))}
      {rest.length > 0 && (
        <Fold
          className="more"
          wrong={wrong}
          summary={
            <>
              More options{' '}
              <span className="small">
                {rest.map(({ content }) => titleIn(content)).join(', ')}
              </span>
            </>
          }
        >
          <div className="fields">
            {rest.map(({ name, content }) => (
              <div key={name} className="field" data-name={name}>
                {content}
                {noteOf(name)}
              </div>
            ))}
          </div>
        </Fold>
      )}
    </div>
  );
  // The spec itself and a group that contains all fields need no title.
  const bare =
    fieldPathId.path.length === 0 ||
    fieldPathId.path.join() === MAIN_GROUP ||
    uiSchema?.['ui:bare'] === true;
  if (bare) return body;
  return (
    <fieldset className="group">
      <legend>{uiSchema?.['ui:title'] as string}</legend>
      {schema.description && <p className="small">{schema.description}</p>}
      {body}
    </fieldset>
  );
}

function titleIn(content: { props: unknown }): string {
  const { uiSchema } = content.props as { uiSchema?: Record<string, unknown> };
  const title = uiSchema?.['ui:title'];
  return typeof title === 'string' ? title : '';
}

const NO_NOTES: Notes = {};

// The form compares these objects at every render. Constant objects make that comparison fast.
const DEFAULTS = {
  emptyObjectFields: 'skipDefaults',
  arrayMinItems: { populate: 'never' },
} as const;
const TEMPLATES = { FieldTemplate, ObjectFieldTemplate };
const WIDGETS = { TextWidget, SelectWidget, CheckboxWidget, UpDownWidget: TextWidget };
const FIELDS = { Lines, Pairs, Free, OptionalGroup };
