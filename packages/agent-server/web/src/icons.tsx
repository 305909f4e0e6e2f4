// Pictures of buttons, drawn here: not every machine has a font with them.

function Icon({ path }: { path: string }) {
  return (
    <svg class="drawn" viewBox="0 0 20 20" width="18" height="18" aria-hidden="true">
      <path d={path} fill="none" stroke="currentColor" stroke-width="1.6" stroke-linecap="round" stroke-linejoin="round" />
    </svg>
  );
}

export const Pencil = () => <Icon path="M3.5 16.5l.8-3.6L13.6 3.6l2.8 2.8-9.3 9.3zM12 5.2l2.8 2.8" />;
export const Bin = () => <Icon path="M3.5 5.5h13M8 5.5v-2h4v2M5.2 5.5l.8 11h8l.8-11M8.5 8.5v5M11.5 8.5v5" />;
export const Clip = () => <Icon path="M14.5 9l-5.3 5.3a2.9 2.9 0 0 1-4.1-4.1l6-6a2 2 0 0 1 2.8 2.8l-5.7 5.7a1 1 0 0 1-1.4-1.4L12 6.1" />;
export const Sheet = () => <Icon path="M5 2.5h7l3 3v12H5zM12 2.5v3h3M7.5 9.5h5M7.5 12.5h5" />;
export const Bars = () => <Icon path="M3 5.5h14M3 10h14M3 14.5h14" />;
export const Cross = () => <Icon path="M5 5l10 10M15 5L5 15" />;
export const Microphone = () => <Icon path="M10 2.5a2 2 0 0 1 2 2v5a2 2 0 0 1-4 0v-5a2 2 0 0 1 2-2zM5 9.5a5 5 0 0 0 10 0M10 14.5v3M7 17.5h6" />;
export const Dots = () => <Icon path="M4.5 10h.01M10 10h.01M15.5 10h.01" />;
export const Pin = () => <Icon path="M7 3.5h6l-1 5 2.5 3h-9L8 8.5zM10 11.5v5" />;
