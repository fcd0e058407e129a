import { TextInput } from '@mantine/core';
import { useId, useRef, useState, type KeyboardEvent, type ReactNode } from 'react';
import type { FieldOption } from '../api/schema';

interface Props {
  id?: string;
  label: string;
  description?: ReactNode;
  error?: ReactNode;
  required?: boolean;
  disabled?: boolean;
  readOnly?: boolean;
  placeholder?: string;
  value: string;
  options: readonly FieldOption[];
  onChange: (value: string) => void;
  onBlur?: () => void;
}

/**
 * A text field with a list of its known values, which typing searches. It follows the ARIA pattern
 * of a combobox: the focus stays in the text field.
 */
export function ChoiceInput({ value, options, onChange, onBlur, ...field }: Props) {
  const list = useId();
  const [open, setOpen] = useState(false);
  // The text that was typed since the list was opened. Without one, the list shows all values.
  const [typed, setTyped] = useState<string>();
  const [active, setActive] = useState(-1);
  const input = useRef<HTMLInputElement>(null);
  const shown = typed ? options.filter((option) => matches(option, typed)) : options;
  const show = () => {
    if (field.disabled || field.readOnly) return;
    setOpen(true);
    setTyped(undefined);
    setActive(options.findIndex((option) => option.value === value));
  };
  const close = () => {
    setOpen(false);
    setActive(-1);
  };
  const choose = (option: FieldOption) => {
    onChange(option.value);
    close();
  };
  const move = (by: number) => {
    if (shown.length === 0) return;
    const next = (active + by + shown.length) % shown.length;
    setActive(active === -1 && by < 0 ? shown.length - 1 : next);
    document.getElementById(`${list}-${next}`)?.scrollIntoView({ block: 'nearest' });
  };
  const keyed = (event: KeyboardEvent) => {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      if (open) move(event.key === 'ArrowDown' ? 1 : -1);
      else show();
    } else if (event.key === 'Enter' && open && shown[active]) {
      // Without a selected value, Enter submits the form as in any text field.
      event.preventDefault();
      choose(shown[active]);
    } else if (event.key === 'Escape' && open) {
      event.preventDefault();
      event.stopPropagation();
      close();
    }
  };
  return (
    <div className="choice">
      <TextInput
        {...field}
        ref={input}
        role="combobox"
        aria-expanded={open}
        aria-controls={list}
        aria-autocomplete="list"
        aria-activedescendant={open && active >= 0 ? `${list}-${active}` : undefined}
        value={value}
        spellCheck={false}
        autoComplete="off"
        onClick={show}
        onKeyDown={keyed}
        onChange={(event) => {
          onChange(event.currentTarget.value);
          setTyped(event.currentTarget.value);
          setActive(-1);
          setOpen(true);
        }}
        onBlur={() => {
          close();
          onBlur?.();
        }}
      />
      <div
        id={list}
        role="listbox"
        aria-label={`Choices for ${field.label}`}
        hidden={!open || shown.length === 0}
      >
        {open &&
          shown.map((option, index) => (
            // The text field has the focus and handles the keys.
            // eslint-disable-next-line jsx-a11y/click-events-have-key-events, jsx-a11y/interactive-supports-focus
            <div
              key={option.value}
              id={`${list}-${index}`}
              role="option"
              aria-selected={index === active}
              // The focus stays in the text field.
              onMouseDown={(event) => event.preventDefault()}
              onClick={() => choose(option)}
            >
              <Option {...option} />
            </div>
          ))}
      </div>
    </div>
  );
}

function Option({ value, gpu, gpus, gpuMemoryGiB, vCPUs, memoryGiB, ...rest }: FieldOption) {
  const { description, hourlyUSD } = rest;
  const words = gpu
    ? `${gpus} × ${gpu} (${gpuMemoryGiB} GiB), ${vCPUs} vCPUs, ${memoryGiB} GiB`
    : description;
  return (
    <>
      <span className="choice-value">{value}</span>
      {words && <span className="choice-words">{words}</span>}
      {hourlyUSD && <span className="choice-price">{`$${hourlyUSD} per hour`}</span>}
    </>
  );
}

/** Whether every typed word is in the value or in its description. */
function matches({ value, description }: FieldOption, typed: string): boolean {
  const text = `${value} ${description ?? ''}`.toLowerCase();
  return typed
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}
