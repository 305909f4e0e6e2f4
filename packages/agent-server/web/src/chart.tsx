// Two plain charts, drawn here: columns by day, and bars that compare names. Each says its figures as text too.

export interface Figure {
  name: string;
  value: number;
}

const WIDTH = 640;
const HEIGHT = 160;
const BAR = 26;

/** Columns side by side, with the first and the last name below. */
export function Columns({ figures, label, format }: { figures: Figure[]; label: string; format: (value: number) => string }) {
  const most = Math.max(...figures.map((one) => one.value), 1e-9);
  const width = WIDTH / Math.max(figures.length, 1);
  return (
    <svg class="chart" viewBox={`0 0 ${WIDTH} ${HEIGHT + 20}`} role="img" aria-label={`${label}: ${said(figures, format)}`}>
      {figures.map(({ name, value }, at) => {
        const height = (value / most) * HEIGHT;
        return (
          <rect key={name} x={at * width + 1} y={HEIGHT - height} width={Math.max(width - 2, 1)} height={height} rx="2">
            <title>{`${name}: ${format(value)}`}</title>
          </rect>
        );
      })}
      <line x1="0" x2={WIDTH} y1={HEIGHT} y2={HEIGHT} />
      <text x="0" y={HEIGHT + 15}>{figures[0]?.name}</text>
      {figures.length > 1 && <text x={WIDTH} y={HEIGHT + 15} text-anchor="end">{figures.at(-1)?.name}</text>}
    </svg>
  );
}

/** A bar for each name, the longest first. */
export function Bars({ figures, label, format }: { figures: Figure[]; label: string; format: (value: number) => string }) {
  const sorted = [...figures].sort((a, b) => b.value - a.value);
  const most = Math.max(...sorted.map((one) => one.value), 1e-9);
  return (
    <svg class="chart" viewBox={`0 0 ${WIDTH} ${sorted.length * BAR * 1.7}`} role="img" aria-label={`${label}: ${said(sorted, format)}`}>
      {sorted.map(({ name, value }, at) => (
        <g key={name} transform={`translate(0 ${at * BAR * 1.7})`}>
          <text x="0" y="13">{name}</text>
          <text x={WIDTH} y="13" text-anchor="end">{format(value)}</text>
          <rect x="0" y="18" width={Math.max((value / most) * WIDTH, 1)} height={BAR - 14} rx="3" />
        </g>
      ))}
    </svg>
  );
}

function said(figures: Figure[], format: (value: number) => string): string {
  return figures.filter((one) => one.value > 0).map(({ name, value }) => `${name} ${format(value)}`).join(", ");
}
