// Something that a component reads from the server when it is drawn first.

import { useEffect, useState } from "preact/hooks";
import { wordsOf } from "./api";

export interface Loaded<T> {
  data: T | undefined;
  failure: string;
  reload: () => void;
}

export function useLoaded<T>(read: () => Promise<T>, ...changes: unknown[]): Loaded<T> {
  const [data, setData] = useState<T>();
  const [failure, setFailure] = useState("");
  const [asked, setAsked] = useState(0);
  useEffect(() => {
    let isOld = false;
    read().then(
      (answer) => {
        if (isOld) return;
        setData(answer);
        setFailure("");
      },
      (error) => !isOld && setFailure(wordsOf(error)),
    );
    return () => {
      isOld = true;
    };
  }, [asked, ...changes]);
  return { data, failure, reload: () => setAsked((number) => number + 1) };
}
