/** The part of the Standard Schema specification (standardschema.dev) that we use. Its types may be copied. */

interface Issue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

type Result<T> = { readonly value: T; readonly issues?: undefined } | { readonly issues: readonly Issue[] };

/** A schema of zod, valibot, arktype or anything else that has `~standard`. */
export interface Validator<T> {
  /** As the specification defines it. */
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => Result<T> | Promise<Result<T>>;
    readonly types?: { readonly input: unknown; readonly output: T } | undefined;
    /** The JSON Schema extension, where the library has it. */
    readonly jsonSchema?: {
      readonly input: (options: { readonly target: "draft-2020-12" }) => Record<string, unknown>;
    };
  };
}
