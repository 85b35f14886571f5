import CLinux

/// Standard input, output and error of the process.
package enum StandardDescriptors {
    /// Opens a file for each that is closed, so that no socket, event or log gets its number. Reads then see the end, and
    /// writes fail as on a closed descriptor.
    ///
    /// Must be called before anything else opens a descriptor.
    package static func open() {
        sluice_open_standard_descriptors()
    }
}

/// The arguments of the process, as bytes.
package enum ProgramArguments {
    /// Position of the first argument that is not valid UTF-8, which `CommandLine.arguments` replaces silently; the first
    /// after the program's name has position 1. `nil` if all are valid.
    package static var firstInvalidPosition: Int? {
        guard CommandLine.argc > 1 else { return nil }
        return (1..<Int(CommandLine.argc)).first { position in
            guard let argument = unsafe CommandLine.unsafeArgv[position] else { return false }
            return unsafe String(validatingCString: argument) == nil
        }
    }
}
