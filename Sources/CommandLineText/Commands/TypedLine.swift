/// A line that was entered on a terminal.
package enum TypedLine: Sendable, Equatable {
    case message(String)
    case command(SlashCommand)

    /// A line that begins with `/` is a command, and with `//` a message that begins with `/`.
    package init(_ line: String) throws(CommandFault) {
        guard line.hasPrefix("/") else {
            self = .message(line)
            return
        }
        let rest = line.dropFirst()
        self = rest.hasPrefix("/") ? .message(String(rest)) : .command(try SlashCommand(rest))
    }
}
