// Verifies Sigstore bundles with @sigstore/verify, a trusted root and an identity, one verdict a line.
// Arguments: the folder that has node_modules, the trusted root (JSON), identity, OIDC issuer, then bundles.
const fs = require("node:fs");
const path = require("node:path");
const { createRequire } = require("node:module");

const [folder, rootFile, identity, issuer, ...files] = process.argv.slice(2);
const load = createRequire(path.join(path.resolve(folder), "package.json"));
const { bundleFromJSON } = load("@sigstore/bundle");
const { TrustedRoot } = load("@sigstore/protobuf-specs");
const { Verifier, toSignedEntity, toTrustMaterial } = load("@sigstore/verify");

const read = (file) => JSON.parse(fs.readFileSync(file));
const verifier = new Verifier(toTrustMaterial(TrustedRoot.fromJSON(read(rootFile))));
const policy = { subjectAlternativeName: identity, extensions: { issuer } };
for (const file of files) {
  try {
    verifier.verify(toSignedEntity(bundleFromJSON(read(file))), policy);
    console.log("verified");
  } catch (error) {
    console.log(`refused ${error.code ?? ""} ${error.message}`);
  }
}
