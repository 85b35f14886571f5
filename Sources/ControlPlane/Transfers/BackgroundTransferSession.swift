import Foundation
import GatewayConfiguration
import GatewayCore
import StreamTransport
import Synchronization
import URLLoading

/// The background session of the control plane's transfers, which the daemon carries out, also while no gateway runs.
///
/// Each of its tasks has a `BackgroundTransferRecord` as description: a later gateway makes the transfer of it, when the
/// session is created or when the first message about the task arrives. Thread-safe.
final class BackgroundTransferSession: Sendable {
    private static let messageTimeout = 10

    let session: URLSession
    private let delegate: SessionDelegate

    /// Attaches to the daemon, and waits for that up to 5 s.
    /// - Parameters:
    ///   - name: `TransferSettings.background`.
    ///   - settings: where files may be.
    ///   - rules: the only addresses that connections are made to.
    init(_ name: String, on registry: TransferRegistry, settings: TransferSettings, rules: TargetRules) {
        let configuration = URLSessionConfiguration.background(withIdentifier: "sluice.gateway.\(name)")
        configuration.httpCookieStorage = nil
        configuration.urlCredentialStorage = nil
        configuration.connectionProxyDictionary = [:]
        configuration.timeoutIntervalForResource = 366 * 86_400
        configuration.permittedTargets = rules.texts
        // The daemon must not start gateways.
        configuration.sessionSendsLaunchEvents = false
        configuration.transferDaemonPath = Self.daemon
        self.delegate = SessionDelegate(registry, settings)
        self.session = URLSession(configuration: configuration, delegate: self.delegate, delegateQueue: nil)
    }

    /// This program, unless the environment names another.
    private static var daemon: String? {
        guard ProcessInfo.processInfo.environment["SLUICE_TRANSFERD"] == nil else { return nil }
        return try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    }

    /// Makes the transfers of an earlier gateway: unfinished ones, and those that ended meanwhile. Blocks while their files
    /// are stored, up to 10 s; the others follow.
    func restoreAll() {
        if self.session.hasWaitingMessages {
            _ = self.delegate.finished.wait(timeout: .now() + .seconds(Self.messageTimeout))
        }
        let done = DispatchSemaphore(value: 0)
        self.session.getAllTasks { tasks in
            for task in tasks where self.delegate.delegate(of: task) == nil {
                // A gateway was killed before it had described its task.
                task.cancel()
            }
            done.signal()
        }
        _ = done.wait(timeout: .now() + .seconds(Self.messageTimeout))
    }

    /// The calls about a new task go to this delegate.
    func adopt(_ task: URLSessionTask, _ delegate: TransferDelegate) { self.delegate.adopt(task, delegate) }
}

/// State of a background transfer for the next gateway, besides its request.
struct BackgroundTransferRecord: Codable, Equatable, Sendable {
    private static let version = 1

    private var version = Self.version
    let number: UInt64
    let attempt: Int
    /// Seconds since 1970, as all times.
    let createdAt: TimeInterval
    let startedAt: TimeInterval?
    let timeout: TimeInterval
    let destination: String?
    let overwrites: Bool
    let file: String?
    let description: String?
    let labels: [String: String]
    let bodyLimit: Int

    /// - Parameter instants: of the creation and of the start.
    init(
        _ plan: TransferPlan, number: UInt64, attempt: Int, instants: [MonotonicInstant], now: MonotonicInstant,
        description: String?, labels: [String: String]
    ) {
        let times = instants.map { Date().timeIntervalSince1970 - ($0.duration(to: now) / .seconds(1)) }
        self.number = number
        self.attempt = attempt
        self.createdAt = times.first ?? 0
        self.startedAt = times.last
        self.timeout = plan.timeout / .seconds(1)
        self.destination = plan.destination?.path
        self.overwrites = plan.overwrites
        self.file = plan.bodyPath
        self.description = description
        self.labels = labels
        self.bodyLimit = plan.bodyLimit
    }

    /// - Returns: `nil` if the text is not one that `text` returned.
    init?(_ text: String?) {
        guard let text, let record = try? JSONDecoder().decode(Self.self, from: Data(text.utf8)),
            record.version == Self.version, record.number > 0, record.number < UInt64.max, record.attempt > 0,
            record.timeout > 0, record.createdAt.magnitude < 1e11, (record.startedAt ?? 0).magnitude < 1e11
        else { return nil }
        self = record
    }

    var text: String? {
        (try? JSONEncoder().encode(self)).map { String(decoding: $0, as: UTF8.self) }
    }

    /// The instant of a time, also of one before the machine started.
    func instant(_ time: TimeInterval, now: MonotonicInstant) -> MonotonicInstant {
        now.advanced(by: .seconds(time - Date().timeIntervalSince1970))
    }
}

extension TransferPlan {
    /// The plan of a background transfer. Its destination is checked again: the directories may have changed.
    init(restoring record: BackgroundTransferRecord, _ task: URLSessionTask, settings: TransferSettings) {
        self.init(
            request: task.originalRequest ?? URLRequest(url: URL(fileURLWithPath: "/")), bodyLimit: record.bodyLimit,
            memoryLimit: settings.maximumMemory)
        if let path = record.destination {
            self.destination = try? TransferFile(path, below: settings.directories, at: "/destination")
            self.isRefusedDownload = self.destination == nil
        }
        self.overwrites = record.overwrites
        self.timeout = .seconds(min(record.timeout, 366 * 86_400))
        self.body = record.file.map { Body.copied(path: $0) } ?? Body.none
        self.runsInBackground = true
    }
}

/// Passes the calls about each task to the delegate of its attempt.
private final class SessionDelegate: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate, Sendable {
    private let registry: TransferRegistry
    private let settings: TransferSettings
    /// By the identifiers of the tasks, which later gateways do not use again.
    private let delegates = Mutex<[Int: TransferDelegate]>([:])
    /// Signalled behind the messages that waited for the gateway.
    let finished = DispatchSemaphore(value: 0)

    init(_ registry: TransferRegistry, _ settings: TransferSettings) {
        self.registry = registry
        self.settings = settings
    }

    func adopt(_ task: URLSessionTask, _ delegate: TransferDelegate) {
        self.delegates.withLock { $0[task.taskIdentifier] = delegate }
    }

    /// - Returns: `nil` for a task without a transfer.
    func delegate(of task: URLSessionTask) -> TransferDelegate? {
        if let known = self.delegates.withLock({ $0[task.taskIdentifier] }) { return known }
        guard let record = BackgroundTransferRecord(task.taskDescription) else { return nil }
        let transfer = self.registry.restore(record, task, settings: self.settings)
        let delegate = TransferDelegate(transfer, attempt: record.attempt, pipe: nil, targets: self.registry.targets)
        self.adopt(task, delegate)
        transfer.restored(attempt: record.attempt)
        return delegate
    }

    func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) { self.finished.signal() }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        self.delegate(of: dataTask)?.urlSession(session, dataTask: dataTask, didReceive: data)
    }

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
        self.delegate(of: downloadTask)?.urlSession(
            session, downloadTask: downloadTask, didFinishDownloadingTo: location)
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
    ) {
        self.delegate(of: downloadTask)?.urlSession(
            session, downloadTask: downloadTask, didWriteData: bytesWritten, totalBytesWritten: totalBytesWritten,
            totalBytesExpectedToWrite: totalBytesExpectedToWrite)
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64
    ) {
        self.delegate(of: downloadTask)?.urlSession(
            session, downloadTask: downloadTask, didResumeAtOffset: fileOffset, expectedTotalBytes: expectedTotalBytes)
    }

    /// The response of an unanswered challenge is the result, as in the process.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        completionHandler(.performDefaultHandling, nil)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        self.delegate(of: task)?.urlSession(session, task: task, didFinishCollecting: metrics)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        self.delegate(of: task)?.urlSession(session, task: task, didCompleteWithError: error)
        self.delegates.withLock { $0[task.taskIdentifier] = nil }
    }
}
