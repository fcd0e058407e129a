import type { Environment, Part, Price } from '../api/schema';
import { compare } from './format';
import { toneOfPart } from './tone';

/** An amount in thousandths of a US dollar: whole numbers add up exactly. */
type Thousandths = number;

/** Reads decimal text. `undefined` is a price that is not known, which is not 0. */
export function amountOf(text: string | null | undefined): Thousandths | undefined {
  const [, whole, part = ''] = /^(\d{1,9})(?:\.(\d{1,9}))?$/.exec(text ?? '') ?? [];
  return whole === undefined ? undefined : Math.round(Number(`${whole}.${part || '0'}`) * 1000);
}

/** An amount as text: `$0.526`, `$1,204.50`. */
export function dollars(amount: Thousandths): string {
  const [whole = '0', part = ''] = (amount / 1000).toFixed(3).split('.');
  return `$${whole.replace(/\B(?=(\d{3})+$)/g, ',')}.${part.replace(/0$/, '')}`;
}

type Priced = Pick<Environment, 'power' | 'price' | 'failed' | 'parts'>;

/** Whether the environment could not start: the cloud refuses the most expensive part. */
function cannotStart({ power, failed }: Priced): boolean {
  return failed && power === 'Starting';
}

/** Whether a resource could not be created, so that the environment never ran. */
export function isNotCreated(environment: Priced): boolean {
  const isMissing = (part: Part) => toneOfPart(part) === 'bad' && !part.externalName;
  return cannotStart(environment) && environment.parts.some(isMissing);
}

/** The price of an environment by the hour at its power state. */
export function priceNow(environment: Priced): Thousandths | undefined {
  const { power, price } = environment;
  const isOff = power === 'Stopped' || (cannotStart(environment) && !isNotCreated(environment));
  const stopped = isOff ? amountOf(price?.stoppedHourlyUSD) : undefined;
  return stopped ?? amountOf(price?.hourlyUSD);
}

/** The price by the hour in words. A price that is not known is said to be so. */
export function hourly(amount: Thousandths | undefined): string {
  return amount === undefined ? 'Price unknown' : `${dollars(amount)} per hour`;
}

/** Hours of a month: a twelfth of 365 days, as in the function's prices. */
const HOURS_PER_MONTH = 730;

/** The cost of a month at a price by the hour, in whole dollars. */
export function monthly(amount: Thousandths): string {
  const whole = String(Math.round((amount * HOURS_PER_MONTH) / 1000));
  return `$${whole.replace(/\B(?=(\d{3})+$)/g, ',')}`;
}

/** A price in a sentence, with its source. */
export function priceWords(price: Price | null | undefined): string {
  const runs = amountOf(price?.hourlyUSD);
  if (!price || runs === undefined) return 'Price unknown';
  const stopped = amountOf(price.stoppedHourlyUSD);
  return (
    `About ${hourly(runs)}` +
    (stopped === undefined ? '' : `, ${dollars(stopped)} while stopped`) +
    (price.asOf ? ` (prices of ${price.asOf})` : '')
  );
}

/** A sum of prices by the hour. */
export interface Sum {
  environments: number;
  /** The sum of the prices that are known. */
  amount: Thousandths;
  /** How many environments have no price. */
  unknown: number;
  /** How many environments were never created, and are not in the amount. */
  notCreated: number;
}

/** The cost of the environments with one property by the hour. */
export interface Cost extends Sum {
  name: string;
  /** The part of the sum for stopped environments. */
  stopped: Sum;
}

/** The sum of the prices of environments at their power states. */
export function sumOf(environments: readonly Environment[]): Sum {
  const created = environments.filter((environment) => !isNotCreated(environment));
  const amounts = created.map(priceNow);
  return {
    environments: environments.length,
    amount: amounts.reduce<number>((sum, amount) => sum + (amount ?? 0), 0),
    unknown: amounts.filter((amount) => amount === undefined).length,
    notCreated: environments.length - created.length,
  };
}

/** The sum for stopped environments. */
export function stoppedSumOf(environments: readonly Environment[]): Sum {
  return sumOf(environments.filter(({ power }) => power === 'Stopped'));
}

/** The costs by a property of environments, the largest first. */
export function costsBy(
  environments: readonly Environment[],
  nameOf: (environment: Environment) => string,
): Cost[] {
  const groups = new Map<string, Environment[]>();
  for (const environment of environments) {
    const name = nameOf(environment);
    groups.set(name, [...(groups.get(name) ?? []), environment]);
  }
  return [...groups]
    .map(([name, all]) => ({ name, ...sumOf(all), stopped: stoppedSumOf(all) }))
    .sort((a, b) => b.amount - a.amount || compare(a.name, b.name));
}

/** The cost of a month at the prices of now, in words. */
export function monthWords({ amount, unknown, environments, notCreated }: Sum): string {
  if (unknown > 0 && unknown === environments - notCreated) return 'Unknown';
  return unknown > 0 ? `${monthly(amount)} + ${unknown} unknown` : monthly(amount);
}

/** A sum in words. It says how many prices are missing, and is unknown if all are. */
export function sumWords({ amount, unknown, environments, notCreated }: Sum): string {
  if (unknown > 0 && unknown === environments - notCreated) return 'Unknown';
  return unknown > 0 ? `${dollars(amount)} + ${unknown} unknown` : dollars(amount);
}
