import Foundation
import GatewayConfiguration
import GatewayCore

/// A configuration file and the files that it names, on this machine.
enum ConfigurationFile {
    /// Reads and checks the file at `path` and every file that it names. Used at start, by `check` and for each reload.
    ///
    /// - Throws: `ConfigurationProblems` for its content, `UnreadableFiles` when something cannot be opened.
    static func load(_ path: String) throws -> LocatedConfiguration {
        let located = try self.read(path)
        try self.audit(located)
        return located
    }

    /// The same without looking at the files that it names.
    static func read(_ path: String) throws -> LocatedConfiguration {
        if let fault = self.fault(path, .read) { throw UnreadableFiles("\(path): \(self.text(of: fault))") }
        do {
            let handle = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
            let content = try handle.read(upToCount: ConfigurationReader.maximumFileSize + 1)
            return try ConfigurationReader.read(content.map { [UInt8]($0) } ?? [], file: path)
        } catch let error as ConfigurationProblems {
            throw error
        } catch {
            throw UnreadableFiles("\(path): cannot be read: \(error.localizedDescription)")
        }
    }

    /// Looks at the files that a configuration names: certificates, keys, passwords, key logs; and into those of TLS.
    ///
    /// - Throws: `UnreadableFiles` with a line for each that cannot be used.
    static func audit(_ located: LocatedConfiguration) throws {
        let unreadable = FileAudit.files(of: located).filter { self.fault($0.path, $0.use) != nil }.map(\.path)
        let problems =
            FileAudit(check: self.fault).problems(in: located)
            + MaterialAudit(located, except: Set(unreadable)).problems()
        guard problems.isEmpty else { throw UnreadableFiles(problems) }
    }

    /// How the configuration of `source` is read again, and its files looked at, while it runs.
    static func terms(of source: ConfigurationSource) -> RunningConfiguration.Terms {
        var terms = RunningConfiguration.Terms()
        if case .file(let path, _) = source { terms.read = { try self.read(path) } }
        terms.adjust = { source.adjust(&$0) }
        terms.check = { self.fault($0, $1) }
        return terms
    }

    private static func fault(_ path: String, _ use: FileUse) -> FileProblem? {
        let files = FileManager.default
        var isDirectory: ObjCBool = false
        guard files.fileExists(atPath: path, isDirectory: &isDirectory) else {
            guard use == .append else { return .missing }
            let folder = (path as NSString).deletingLastPathComponent
            return files.isWritableFile(atPath: folder.isEmpty ? "." : folder) ? nil : .notPermitted
        }
        if isDirectory.boolValue { return .notAFile }
        switch use {
        case .read: return files.isReadableFile(atPath: path) ? nil : .notPermitted
        case .append: return self.isRegular(path) ? files.isWritableFile(atPath: path) ? nil : .notPermitted : .notAFile
        }
    }

    /// Reading something else than a regular file may wait for a writer.
    private static func isRegular(_ path: String) -> Bool {
        let target = (path as NSString).resolvingSymlinksInPath
        let kind = try? FileManager.default.attributesOfItem(atPath: target)[.type] as? FileAttributeType
        return kind == .typeRegular
    }

    private static func text(of fault: FileProblem) -> String {
        switch fault {
        case .missing: "no such file"
        case .notPermitted: "may not be read by this user"
        case .notAFile: "is not a file"
        case .other(let text): text
        }
    }
}

/// Where the running configuration comes from, with the command line's options.
enum ConfigurationSource: Sendable {
    case builtIn(LogOverrides)
    /// A file, which a reload reads again, and what the command line puts over it each time.
    case file(String, overrides: LogOverrides)
    case bridge(BridgeRunOptions)
}

extension ConfigurationSource {
    /// Nothing is printed on standard output.
    var isQuiet: Bool {
        switch self {
        case .builtIn, .file: false
        case .bridge(let terms): terms.isQuiet
        }
    }

    /// A bridge without options has no control plane.
    private var hasNoControlPlane: Bool {
        switch self {
        case .builtIn, .file: false
        case .bridge: true
        }
    }

    /// Every upstream must be reachable before anything listens.
    var requiresTarget: Bool {
        switch self {
        case .builtIn, .file: false
        case .bridge(let terms): terms.requiresTarget
        }
    }

    /// Lays over a configuration what the command line says.
    func adjust(_ configuration: inout GatewayConfiguration) {
        switch self {
        case .builtIn(let overrides), .file(_, let overrides): overrides.apply(to: &configuration)
        case .bridge: break
        }
        if self.hasNoControlPlane { configuration.control.address = nil }
    }
}
