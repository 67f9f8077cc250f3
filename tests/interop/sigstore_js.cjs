// Verifies Sigstore bundles with @sigstore/verify and one public key, and prints one verdict a line.
// Arguments: the folder that has node_modules, the public key (PEM), then bundles.
const crypto = require("node:crypto");
const fs = require("node:fs");
const path = require("node:path");
const { createRequire } = require("node:module");

const [folder, keyFile, ...files] = process.argv.slice(2);
const load = createRequire(path.join(path.resolve(folder), "package.json"));
const { bundleFromJSON } = load("@sigstore/bundle");
const { TrustedRoot } = load("@sigstore/protobuf-specs");
const { Verifier, toSignedEntity, toTrustMaterial } = load("@sigstore/verify");

const publicKey = crypto.createPublicKey(fs.readFileSync(keyFile));
const der = publicKey.export({ type: "spki", format: "der" });
const id = crypto.createHash("sha256").update(der).digest("base64");
const root = TrustedRoot.fromJSON({});
const material = toTrustMaterial(root, (hint) => {
  if (hint !== id) throw new Error(`no key for hint ${hint}`);
  return { publicKey, validFor: () => true };
});
const options = { tlogThreshold: 0, ctlogThreshold: 0, timestampThreshold: 0 };
for (const file of files) {
  try {
    const bundle = bundleFromJSON(JSON.parse(fs.readFileSync(file)));
    new Verifier(material, options).verify(toSignedEntity(bundle));
    console.log("verified");
  } catch (error) {
    console.log(`refused ${error.code ?? error.message}`);
  }
}
