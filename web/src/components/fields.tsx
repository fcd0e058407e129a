import { NativeSelect, Skeleton, Switch, Textarea, TextInput } from '@mantine/core';
import type { FieldProps, WidgetProps } from '@rjsf/utils';
import { useState, type ReactNode } from 'react';
import type { FieldOption } from '../api/schema';
import { readPairs, writePairs } from '../kinds/pairs';
import { beginning, type Data, type Schema } from '../kinds/schema';
import { messagesIn } from '../kinds/validate';
import { ChoiceInput } from './ChoiceInput';
import { Loaded, onDemand } from './onDemand';

export type Field = FieldProps<Data, Schema>;
type Widget = WidgetProps<Data, Schema>;

/** The description and error of a field. */
function words({ schema, options, rawErrors }: Pick<Widget, 'schema' | 'options' | 'rawErrors'>): {
  description: ReactNode;
  error: ReactNode;
} {
  const text = options.description ?? schema.description;
  const help = options.help;
  return {
    description: help ? `${sentence(text)} ${sentence(help)}`.trim() : text,
    error: rawErrors?.length ? rawErrors.join('; ') : undefined,
  };
}

/** A text that ends a sentence. */
function sentence(text: ReactNode): string {
  const words = typeof text === 'string' ? text.trim() : '';
  return /[^.!?]$/.test(words) ? `${words}.` : words;
}

/** A field for text or a number. */
export function TextWidget(props: Widget) {
  const { id, label, required, disabled, readonly, schema, onChange, onBlur } = props;
  const value: unknown = props.value;
  const number = schema.type === 'integer' || schema.type === 'number';
  const change = (text: string) => onChange(text === '' ? undefined : number ? Number(text) : text);
  const known = schema['x-options'] ?? [];
  const placeholder = typeof schema.default === 'object' ? undefined : schema.default?.toString();
  const shared = {
    id,
    label,
    ...words(props),
    required,
    disabled,
    readOnly: readonly,
    placeholder,
    onBlur: () => onBlur(id, value),
  };
  if (known.length > 0)
    return (
      <ChoiceInput
        {...shared}
        value={(value as string | undefined) ?? ''}
        options={known}
        onChange={change}
      />
    );
  return (
    <TextInput
      {...shared}
      type={number ? 'number' : 'text'}
      min={schema.minimum}
      max={schema.maximum}
      step={schema.type === 'integer' ? 1 : 'any'}
      value={(value as string | number | undefined) ?? ''}
      spellCheck={false}
      autoComplete="off"
      onChange={(event) => change(event.currentTarget.value)}
    />
  );
}

/** A known value in words: the value, its description and its price. */
function labelOf({ value, description, hourlyUSD }: FieldOption): string {
  const price = hourlyUSD && `$${hourlyUSD} per hour`;
  const words = [description, price].filter(Boolean).join(', ');
  return words ? `${value}: ${words}` : value;
}

/** A field for one of several values. */
export function SelectWidget(props: Widget) {
  const { id, label, required, disabled, options, schema, onChange, onBlur } = props;
  const value: unknown = props.value;
  const none =
    schema.default === undefined
      ? [{ value: '', label: required ? 'Choose…' : 'Platform default', disabled: required }]
      : [];
  const data = [
    ...none,
    ...(options.enumOptions ?? []).flatMap(({ value, label }) => {
      const known = schema['x-options'];
      const offered = known?.find((option) => option.value === value);
      // A value that the platform team does not offer is shown only if it is the current one.
      if (known && !offered && value !== props.value) return [];
      return [{ value: String(value), label: offered ? labelOf(offered) : label }];
    }),
  ];
  return (
    <NativeSelect
      id={id}
      label={label}
      {...words(props)}
      required={required}
      disabled={disabled}
      data={data}
      value={(value as string | undefined) ?? ''}
      onChange={(event) => onChange(event.currentTarget.value || undefined)}
      onBlur={() => onBlur(id, value)}
    />
  );
}

/**
 * A switch. The library's label includes the description, so `aria-label` repeats the label alone.
 */
export function CheckboxWidget(props: Widget) {
  const { id, label, disabled, onChange } = props;
  const value: unknown = props.value;
  return (
    <Switch
      id={id}
      aria-label={label}
      label={label}
      {...words(props)}
      disabled={disabled}
      checked={Boolean(value)}
      onChange={(event) => onChange(event.currentTarget.checked)}
    />
  );
}

interface TextFieldProps {
  field: Field;
  hint: string;
  write: (data: unknown) => string;
  /** Throws if the text is invalid. */
  read: (text: string) => unknown;
}

/** A field whose value is edited as text. */
export function TextField({ field, hint, write, read }: TextFieldProps) {
  const {
    fieldPathId,
    uiSchema,
    schema,
    formData,
    required,
    onChange,
    onBlur,
    errorSchema,
    rawErrors = [],
  } = field;
  const [text, setText] = useState(() => textOf(formData, write));
  const { unreadable } = understood(text, read);
  const options = { ...uiSchema?.['ui:options'], help: uiSchema?.['ui:help'] };
  const { description } = words({ schema, options, rawErrors: undefined });
  const change = (next: string) => {
    setText(next);
    onChange(understood(next, read).data as Data | undefined, fieldPathId.path);
  };
  const errors =
    unreadable === undefined ? [...rawErrors, ...messagesIn(errorSchema)] : [unreadable];
  return (
    <Textarea
      id={fieldPathId.$id}
      label={uiSchema?.['ui:title'] as string}
      description={`${sentence(description)} ${hint}`.trim()}
      error={errors.length > 0 ? errors.join('; ') : undefined}
      required={required}
      disabled={Boolean(uiSchema?.['ui:disabled'])}
      rows={Math.min(8, Math.max(2, text.split('\n').length))}
      // Each entry is one line of any length.
      wrap="off"
      value={text}
      spellCheck={false}
      className="mono"
      onChange={(event) => change(event.currentTarget.value)}
      onBlur={() => onBlur(fieldPathId.$id, formData)}
    />
  );
}

function textOf(data: unknown, write: (data: unknown) => string): string {
  if (data === undefined) return '';
  return typeof data === 'string' ? data : write(data);
}

/**
 * The value of a text. An invalid text is passed on unchanged: the schema does not allow text
 * there, so it cannot be submitted.
 */
function understood(
  text: string,
  read: (text: string) => unknown,
): { data: unknown; unreadable?: string } {
  if (text.trim() === '') return { data: undefined };
  try {
    return { data: read(text) };
  } catch (error) {
    return {
      data: text,
      unreadable: error instanceof Error ? error.message.split('\n')[0]! : String(error),
    };
  }
}

/** A list of texts, one on each line. */
export function Lines(field: Field) {
  const read = (text: string) =>
    text
      .split('\n')
      .map((line) => line.trim())
      .filter(Boolean);
  return (
    <TextField
      field={field}
      hint="One per line."
      write={(data) => (data as string[]).join('\n')}
      read={read}
    />
  );
}

/** Names and their values. */
export function Pairs(field: Field) {
  const write = (data: unknown) => writePairs(data as Record<string, string>);
  return <TextField field={field} hint={PAIRS} write={write} read={readPairs} />;
}

const PAIRS = String.raw`One NAME=value per line. Write a value with several lines as NAME="one\ntwo".`;

/**
 * The form loads it ahead. If loading failed later, the user would have to reload the page and lose
 * the input.
 */
export const Yaml = onDemand(() => import('./Free'));

/** A value without a form of its own, as YAML. */
export function Free(field: Field) {
  return (
    <Loaded fallback={<Skeleton height={96} />}>
      <Yaml {...field} />
    </Loaded>
  );
}

/**
 * An optional group with a switch. It starts with the current values, because some of them may not
 * change.
 */
export function OptionalGroup(field: Field) {
  const { uiSchema, schema, formData, fieldPathId, onChange, registry } = field;
  const { ObjectField } = registry.fields;
  const on = formData !== undefined;
  const { 'ui:field': _, 'ui:current': current, ...inner } = uiSchema ?? {};
  const first = (current as Data | undefined) ?? beginning(schema);
  return (
    <div className="optional">
      <Switch
        aria-label={uiSchema?.['ui:title']}
        label={uiSchema?.['ui:title'] as string}
        description={schema.description}
        checked={on}
        onChange={(event) =>
          onChange(event.currentTarget.checked ? first : undefined, fieldPathId.path)
        }
      />
      {on && ObjectField && <ObjectField {...field} uiSchema={{ ...inner, 'ui:bare': true }} />}
    </div>
  );
}
