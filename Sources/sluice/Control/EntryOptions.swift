import ArgumentParser
import GatewayCore
import StreamTransport

/// Which entry of the configuration is meant, and what is done to it.
struct EntryOptions: ParsableArguments {
    @Argument(help: ArgumentHelp("Show this one alone, or do something to it.", valueName: "NAME"))
    var name: String?

    @Flag(help: "Delete it.")
    var delete = false

    @Option(
        help: ArgumentHelp(
            "Make it, or put it in the place of what there is, as this file has it: JSON with the keys of the configuration.",
            valueName: "file"), completion: .file())
    var put: String?

    @Option(
        help: ArgumentHelp(
            "Change only this: JSON with some of its keys, like '{\"max-connections\": 10}'.", valueName: "json"))
    var patch: String?

    @Flag(help: "Only tell what would change.")
    var dryRun = false

    func action(_ reader: inout OptionReader) throws -> EntryAction? {
        let changes = [self.delete, self.put != nil, self.patch != nil].filter(\.self).count
        if changes > 1 { reader.note("--delete", expected: "one of --delete, --put and --patch", found: "several") }
        if changes == 1, self.name == nil {
            reader.note("NAME", expected: "the name of what is changed", found: "none")
        }
        if changes == 0, self.dryRun {
            reader.note("--dry-run", expected: "--delete, --put or --patch beside it", found: "none")
        }
        guard reader.problems.isEmpty else { return nil }
        guard let name else { return .list }
        if self.delete { return .delete(name, dryRun: self.dryRun) }
        if let patch { return .patch(name, Array(patch.utf8), dryRun: self.dryRun) }
        guard let put else { return .show(name) }
        do throws(SystemError) {
            return .put(name, try SystemFile.read(put, limit: 1 << 20), dryRun: self.dryRun)
        } catch {
            throw UnusableFiles("sluice: --put: \(put): \(error)")
        }
    }
}
