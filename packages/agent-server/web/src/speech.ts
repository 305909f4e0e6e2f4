// Reading aloud and dictation, where the browser can.

import { language } from "./words";

export const canRead = "speechSynthesis" in window;

/** Read a text aloud; whatever was being read stops. */
export function readAloud(text: string, ended: () => void): void {
  speechSynthesis.cancel();
  const utterance = new SpeechSynthesisUtterance(text);
  utterance.onend = ended;
  utterance.onerror = ended;
  speechSynthesis.speak(utterance);
}

export function stopReading(): void {
  speechSynthesis.cancel();
}

interface Recognition {
  lang: string;
  continuous: boolean;
  interimResults: boolean;
  onresult: ((event: RecognitionEvent) => void) | null;
  onend: (() => void) | null;
  start(): void;
  stop(): void;
}

interface RecognitionEvent {
  resultIndex: number;
  results: ArrayLike<ArrayLike<{ transcript: string }> & { isFinal: boolean }>;
}

type Recognizer = new () => Recognition;

function recognizer(): Recognizer | undefined {
  const own = window as unknown as { SpeechRecognition?: Recognizer; webkitSpeechRecognition?: Recognizer };
  return own.SpeechRecognition ?? own.webkitSpeechRecognition;
}

export function canDictate(): boolean {
  return recognizer() !== undefined;
}

/** Listen until the returned function is called; every finished phrase is heard once. */
export function dictate(hear: (phrase: string) => void, ended: () => void): () => void {
  const Recognizer = recognizer();
  if (Recognizer === undefined) return () => undefined;
  const recognition = new Recognizer();
  recognition.lang = navigator.languages[0] ?? language;
  recognition.continuous = true;
  recognition.interimResults = false;
  recognition.onresult = (event) => {
    for (let at = event.resultIndex; at < event.results.length; at += 1) {
      const result = event.results[at];
      const phrase = result?.[0]?.transcript.trim();
      if (result?.isFinal && phrase) hear(phrase);
    }
  };
  recognition.onend = ended;
  recognition.start();
  return () => recognition.stop();
}
