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

/// The arguments of the process.
package struct ProgramArguments {
    /// The program's name first; invalid UTF-8 is replaced. Empty where the system does not say.
    package let all: [String]
    /// Position of the first argument that is not valid UTF-8; the first after the program's name has position 1. `nil` if
    /// all are valid.
    package let firstInvalidPosition: Int?

    /// Of this process.
    package init() {
        var arguments = Self.found
        if arguments.isEmpty {
            // A library that was loaded first has changed the environment (setenv), beside which Swift looks for them.
            let text = (try? SystemFile.read("/proc/self/cmdline", limit: 1 << 24)) ?? []
            // proc(5): each argument ends with a zero byte.
            arguments = text.split(separator: 0, omittingEmptySubsequences: false).dropLast().map { Array($0) }
        }
        self.all = arguments.map { String(decoding: $0, as: UTF8.self) }
        self.firstInvalidPosition = arguments.indices.dropFirst().first {
            String(validating: arguments[$0], as: UTF8.self) == nil
        }
    }

    /// The bytes of those that Swift finds.
    private static var found: [[UInt8]] {
        (0..<Int(CommandLine.argc)).map { position in
            guard let text = unsafe CommandLine.unsafeArgv[position] else { return [] }
            return unsafe UnsafeRawBufferPointer(start: text, count: strlen(text)).map { $0 }
        }
    }
}
