import Foundation
import StreamTransport

/// Where the daemon of a user has its socket, its journal and its files (XDG Base Directory Specification).
package struct TransferFolders: Hashable, Sendable {
    /// Of sockets: `$XDG_RUNTIME_DIR/sluice`, or `run` in the state folder without that variable.
    package var runtime: String
    /// `$XDG_STATE_HOME/sluice`, by default `~/.local/state/sluice`.
    package var state: String

    package init(runtime: String, state: String) {
        self.runtime = runtime
        self.state = state
    }

    /// Relative paths are ignored, as the specification demands.
    /// - Parameter home: without the variable `HOME`.
    package init(environment: [String: String], home: String) {
        func absolute(_ name: String) -> String? {
            environment[name].flatMap { $0.hasPrefix("/") ? $0 : nil }
        }
        let home = absolute("HOME") ?? home
        self.state = (absolute("XDG_STATE_HOME") ?? "\(home)/.local/state") + "/sluice"
        self.runtime = absolute("XDG_RUNTIME_DIR").map { "\($0)/sluice" } ?? "\(self.state)/run"
    }

    /// Those of this process.
    package static var current: TransferFolders {
        TransferFolders(environment: ProcessInfo.processInfo.environment, home: NSHomeDirectory())
    }

    package var socket: String { "\(self.runtime)/transferd.socket" }
    /// Locked by the daemon that runs.
    package var lock: String { "\(self.runtime)/transferd.lock" }
    package var journal: String { "\(self.state)/transfers.sqlite" }
    /// Log file of a daemon that a program started.
    package var log: String { "\(self.state)/transferd.log" }
    package var transfers: String { "\(self.state)/transfers" }

    /// The files of one session. The name is made of the identifier's bytes, so that no identifier leaves the folder.
    package func session(_ identifier: String) -> String {
        "\(self.transfers)/\(Self.name(of: identifier))"
    }

    /// Letters, digits and hyphens of the identifier as they are, other bytes as `_` and two hexadecimal digits.
    package static func name(of identifier: String) -> String {
        var name = ""
        for byte in identifier.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"):
                name.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                name += "_" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
            }
        }
        return name
    }

    /// Longest identifier in bytes: a file's name has at most 255, and each byte may become three.
    package static let identifierLimit = 80

    /// Whether `name` is that of a file in a session's folder, and no path.
    package static func isFileName(_ name: String) -> Bool {
        !name.isEmpty && name.utf8.count <= 128 && name != "." && name != ".."
            && name.utf8.allSatisfy { $0 != UInt8(ascii: "/") && $0 > 0x20 && $0 < 0x7F }
    }

    /// Brings the names of new files in a folder to the disk.
    package static func synchronize(_ folder: String) {
        let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        _ = fsync(descriptor)
        _ = close(descriptor)
    }

    /// Creates a folder that only the user can enter.
    /// - Returns: `nil` if it is there, the user's own, and closed to others; else why not, in words that follow its path.
    package static func create(_ path: String) -> String? {
        var reason: String?
        do {
            try FileManager.default.createDirectory(
                atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        } catch {
            let cause = (error as NSError).userInfo[NSUnderlyingErrorKey] as? POSIXError
            reason = cause.map { "\(SystemError($0.code.rawValue))" } ?? error.localizedDescription
        }
        var status = stat()
        guard lstat(path, &status) == 0 else { return "cannot be created: \(reason ?? "it is gone")" }
        guard status.st_mode & S_IFMT == S_IFDIR else { return "is not a folder" }
        guard status.st_uid == geteuid() else { return "belongs to another user" }
        return status.st_mode & 0o077 == 0 || chmod(path, 0o700) == 0 ? nil : "is open to other users"
    }
}
