import Foundation
import GatewayConfiguration
import GatewayCore
import StreamTransport

/// Reads a configuration file, and checks the files that it names.
enum ConfigurationFile {
    /// Reads and checks the file at `path` and every file that it names. Used at start, by `check` and for each reload.
    ///
    /// - Throws: `ConfigurationProblems` for its content, `UnusableFiles` when something cannot be opened.
    static func load(_ path: String) throws -> LocatedConfiguration {
        let located = try self.read(path)
        try self.audit(located)
        return located
    }

    /// Reads the file at `path` without checking the files that it names.
    /// - Parameter isAgain: refuses all but regular files: a FIFO would block this reload and all later ones.
    static func read(_ path: String, isAgain: Bool = false) throws -> LocatedConfiguration {
        let problem = self.problem(path, .read) ?? (isAgain && !self.isRegular(path) ? .notAFile : nil)
        if let problem { throw UnusableFiles("\(path): \(self.text(of: problem))") }
        do {
            let handle = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
            let content = try handle.read(upToCount: ConfigurationReader.maximumFileSize + 1)
            return try ConfigurationReader.read(content.map { [UInt8]($0) } ?? [], file: path)
        } catch let error as ConfigurationProblems {
            throw error
        } catch {
            throw UnusableFiles("\(path): cannot be read: \(error.localizedDescription)")
        }
    }

    /// Checks the files that a configuration names: certificates, keys, passwords, key logs. Loads those for TLS.
    ///
    /// - Throws: `UnusableFiles` with one line per invalid file.
    static func audit(_ located: LocatedConfiguration) throws {
        let unreadable = FileAudit.files(of: located).filter { self.namedFileProblem($0.path, $0.use) != nil }
            .map(\.path)
        var problems =
            FileAudit(check: self.namedFileProblem).problems(in: located)
            + MaterialAudit(located, except: Set(unreadable)).problems()
        // An option may name a file for several keys.
        var lines: Set<String> = []
        problems.removeAll { !lines.insert($0.description).inserted }
        guard problems.isEmpty else { throw UnusableFiles(problems) }
    }

    /// How the configuration of `source` is reloaded, and its files are checked, at run time.
    static func reloadSettings(of source: ConfigurationSource) -> RunningConfiguration.Settings {
        var settings = RunningConfiguration.Settings()
        if case .file(let path, _) = source { settings.read = { try self.read(path, isAgain: true) } }
        settings.adjust = { source.adjust(&$0) }
        settings.check = { self.namedFileProblem($0, $1) }
        return settings
    }

    /// A file that the configuration names is read more than once, also by reloads: a FIFO would block them all.
    private static func namedFileProblem(_ path: String, _ use: FileUse) -> FileProblem? {
        self.problem(path, use) ?? (self.kind(path) == .typeUnknown ? .notAFile : nil)
    }

    private static func problem(_ path: String, _ use: FileUse) -> FileProblem? {
        let files = FileManager.default
        var isDirectory: ObjCBool = false
        guard files.fileExists(atPath: path, isDirectory: &isDirectory) else {
            let problem = self.obstacle(to: path)
            guard use == .append, problem == .missing else { return problem }
            let parent = (path as NSString).deletingLastPathComponent
            let folder = parent.isEmpty ? "." : parent
            if files.isWritableFile(atPath: folder) { return nil }
            return files.fileExists(atPath: folder) ? .notPermitted : .unusable("\(SystemError.noSuchFile)")
        }
        switch (use, isDirectory.boolValue) {
        case (.list, true), (.readOrList, true):
            return files.isExecutableFile(atPath: path) ? nil : .notPermitted
        case (.list, false): return .notADirectory
        case (.read, true), (.append, true): return .notAFile
        case (.read, false), (.readOrList, false):
            return files.isReadableFile(atPath: path) ? nil : .notPermitted
        case (.append, false):
            return self.isRegular(path) ? files.isWritableFile(atPath: path) ? nil : .notPermitted : .notAFile
        }
    }

    /// Why nothing is found at a path.
    private static func obstacle(to path: String) -> FileProblem {
        var status = stat()
        guard stat(path, &status) != 0, errno != ENOENT else { return .missing }
        return .unusable("\(SystemError(errno))")
    }

    /// A regular file or a link to one: opening a FIFO would block.
    private static func isRegular(_ path: String) -> Bool { self.kind(path) == .typeRegular }

    /// The type of the file that a path or a link leads to; `typeUnknown` is a FIFO, `nil` no file with a name.
    private static func kind(_ path: String) -> FileAttributeType? {
        let target = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
        return try? FileManager.default.attributesOfItem(atPath: target)[.type] as? FileAttributeType
    }

    private static func text(of problem: FileProblem) -> String {
        switch problem {
        case .missing: "no such file"
        case .notPermitted: "permission denied"
        case .notAFile: "is not a file"
        case .notADirectory: "is not a directory"
        case .unusable(let reason): reason
        }
    }
}

/// Where the running configuration comes from, with the command line's options.
enum ConfigurationSource: Sendable {
    case builtIn(LogOverrides)
    /// A file, which is reloadable, with the command line's overrides applied at each reload.
    case file(String, overrides: LogOverrides)
    case bridge(BridgeRunOptions)
}

extension ConfigurationSource {
    private var bridge: BridgeRunOptions? { if case .bridge(let options) = self { options } else { nil } }

    /// Whether nothing is printed on standard output.
    var isQuiet: Bool { self.bridge?.isQuiet ?? false }

    /// Whether every upstream must be reachable before listeners are opened.
    var requiresTarget: Bool { self.bridge?.requiresTarget ?? false }

    /// Applies the command line's options to a configuration.
    func adjust(_ configuration: inout Configuration) {
        switch self {
        case .builtIn(let overrides), .file(_, let overrides): overrides.apply(to: &configuration)
        // `sluice bridge` has no control plane.
        case .bridge: configuration.control.address = nil
        }
    }
}

/// Options of `sluice bridge` besides its configuration.
struct BridgeRunOptions: Sendable, Equatable {
    /// Exits with 69 unless the target can be reached at start.
    var requiresTarget: Bool
    /// Prints nothing on standard output.
    var isQuiet: Bool
}

/// A configuration file, or a file that it or an option names, cannot be read or is invalid.
struct UnusableFiles: Error, CustomStringConvertible {
    /// One line per file.
    let description: String
    /// The same as single problems, if the configuration names the files.
    let problems: [ConfigurationProblem]

    init(_ description: String) {
        self.description = description
        self.problems = []
    }

    init(_ problems: [ConfigurationProblem]) {
        self.description = problems.map(\.description).joined(separator: "\n")
        self.problems = problems
    }
}
