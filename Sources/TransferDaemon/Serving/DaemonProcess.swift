import BackgroundTransfers
import Foundation
import SQLiteStorage
import StreamTransport
import Synchronization

/// A daemon as a process: folders, lock, socket, journal, and the wait for its end.
package enum DaemonProcess {
    package enum Failure: Error, Hashable, Sendable, CustomStringConvertible {
        /// A folder cannot be used.
        case folder(String, problem: String)
        case socket(SystemError, path: String)
        case journal(SQLiteFailure)
        case system(SystemError)

        package var description: String {
            switch self {
            case .folder(let path, let problem): "\(path) \(problem)"
            case .socket(.notSocket, let path): "cannot listen at \(path): the file exists and is not a socket"
            case .socket(let error, let path): "cannot listen at \(path): \(error)"
            case .journal(let failure): failure.description
            case .system(let error): error.description
            }
        }
    }

    package enum Outcome: Hashable, Sendable {
        /// Nothing was left.
        case ended
        /// Another daemon serves the same folders.
        case alreadyRunning
    }

    /// Serves until no program is connected and no transfer is left. Blocks the calling thread.
    /// - Parameter began: called once the socket accepts programs.
    package static func run(
        _ folders: TransferFolders, _ settings: DaemonSettings, began: @escaping @Sendable () -> Void = {}
    ) throws(Failure) -> Outcome {
        for folder in [folders.runtime, folders.state, folders.transfers] {
            if let problem = TransferFolders.create(folder) { throw .folder(folder, problem: problem) }
        }
        guard let lock = try self.lock(folders.lock) else { return .alreadyRunning }
        defer { _ = close(lock) }
        let file: JournalFile
        do throws(SQLiteFailure) {
            file = try JournalFile(folders.journal)
        } catch {
            throw .journal(error)
        }
        return try self.serve(file, folders, settings, began)
    }

    /// Writes the number of this process into the file.
    /// - Returns: a descriptor that holds the lock while it is open; `nil` if another process has it.
    private static func lock(_ path: String) throws(Failure) -> Int32? {
        let descriptor = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw .system(SystemError(errno)) }
        if flock(descriptor, LOCK_EX | LOCK_NB) == 0 {
            let number = "\(getpid())\n"
            if ftruncate(descriptor, 0) == 0 { _ = write(descriptor, number, number.utf8.count) }
            return descriptor
        }
        _ = close(descriptor)
        return nil
    }

    private static func serve(
        _ file: JournalFile, _ folders: TransferFolders, _ settings: DaemonSettings,
        _ began: @escaping @Sendable () -> Void
    ) throws(Failure) -> Outcome {
        let group: LoopGroup
        do throws(SystemError) {
            group = try LoopGroup(count: 1)
        } catch {
            throw .system(error)
        }
        let loop = group.loops[0]
        let result = Mutex<Failure?>(nil)
        let end = DispatchSemaphore(value: 0)
        let finish: @Sendable (Failure?) -> Void = { failure in
            result.withLock { $0 = failure }
            end.signal()
        }
        let passed = ServiceSupervisor.takeListeningDescriptors().first?.descriptor
        let box = LoopIsolated(file, on: loop)
        let holder = DaemonHolder()
        box.execute { file in
            do throws(Failure) {
                holder.daemon = try self.start(file, folders, settings, on: loop, passed, finish)
                began()
            } catch {
                finish(error)
            }
        }
        withExtendedLifetime(holder) { end.wait() }
        group.stop()
        if let failure = result.withLock({ $0 }) { throw failure }
        return .ended
    }

    private static func start(
        _ file: JournalFile, _ folders: TransferFolders, _ settings: DaemonSettings, on loop: Loop,
        _ passed: Descriptor?,
        _ finish: @escaping @Sendable (Failure?) -> Void
    ) throws(Failure) -> TransferDaemon {
        let daemon: TransferDaemon
        do throws(SQLiteFailure) {
            daemon = try TransferDaemon(file, folders: folders, settings: settings, on: loop) { failure in
                finish(failure.map { .journal($0) })
            }
        } catch {
            throw .journal(error)
        }
        do throws(SystemError) {
            try daemon.start(adopting: passed)
        } catch {
            throw .socket(error, path: folders.socket)
        }
        return daemon
    }
}

/// Keeps the daemon alive while it serves.
private final class DaemonHolder: @unchecked Sendable {  // Used on the loop only.
    var daemon: TransferDaemon?
}
