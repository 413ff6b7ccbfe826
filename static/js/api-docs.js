// Shows the OpenAPI document with Swagger UI. Not in the page, because the Content-Security-Policy
// forbids inline scripts.
//
// @ts-check

const region = /** @type {HTMLElement} */ (document.getElementById("api-docs"));

// @ts-ignore swagger-ui-bundle.js defines it.
globalThis.SwaggerUIBundle({
  url: region.dataset.schema,
  domNode: region,
  deepLinking: true,
  docExpansion: "none",
  defaultModelsExpandDepth: 0,
});
