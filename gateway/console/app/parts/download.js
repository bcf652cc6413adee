// Files that the browser keeps.

/** Have the browser save *parts* of a file, which are texts or blobs. */
export function download(parts, type, ending) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(parts, { type }));
  link.download = `penstock-${new Date().toISOString().slice(0, 19).replaceAll(":", "")}.${ending}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
