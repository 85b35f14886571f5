import ArgumentParser
import ControlAPI
import ControlClient
import GatewayCore

/// What people keep with a connection.
struct NoteOptions: ParsableArguments {
    @Option(help: ArgumentHelp("What it is for, at most 1024 bytes.", valueName: "text"))
    var description: String?

    @Option(help: ArgumentHelp("A hint, 0 to 1. (default: 0.5)", valueName: "number"))
    var priority: String?

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp("A label. Repeat for several.", valueName: "name=value"))
    var label: [String] = []

    func patch(_ reader: inout OptionReader) -> ConnectionPatch {
        var patch = ConnectionPatch(description: self.description)
        if let text = self.priority {
            patch.priority = Double(text)
            if patch.priority == nil {
                reader.note("--priority", expected: "a number from 0 to 1", found: QuotedText.quoted(text))
            }
        }
        switch LabelText.labels(self.label) {
        case .success(let labels): patch.labels = labels.isEmpty ? nil : labels
        case .failure(let fault):
            reader.note(
                "--label", expected: "a name and a value", found: QuotedText.quoted(fault.text),
                remedy: "write it like --label team=blue")
        }
        return patch
    }
}
