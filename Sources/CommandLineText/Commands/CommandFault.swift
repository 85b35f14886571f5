/// Why a line is no command, and what to write instead.
package struct CommandFault: Error, Equatable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) {
        self.description = description
    }
}
