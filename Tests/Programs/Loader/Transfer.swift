import Foundation
import URLLoading

/// One task, and its recorded delegate calls. They come on the session's queue; the lock protects the waiting report.
final class Transfer: @unchecked Sendable {
    private(set) var task: URLSessionTask
    let actions: TransferActions
    private let lock = NSLock()
    private var events: [String] = []
    private var received: Int64 = 0
    private var metrics: URLSessionTaskMetrics?
    private var file: FileHandle?
    private var isCancelled = false
    private var result: TransferReport?
    private var waiter: CheckedContinuation<TransferReport, Never>?

    init(_ task: URLSessionTask, actions: TransferActions) {
        self.task = task
        self.actions = actions
    }

    /// Waits for its end and returns the report.
    func report() async -> TransferReport {
        await withCheckedContinuation { continuation in
            let result = self.lock.withLock { () -> TransferReport? in
                if self.result == nil { self.waiter = continuation }
                return self.result
            }
            if let result { continuation.resume(returning: result) }
        }
    }

    /// Notes what happened; the same several times in a row is noted once.
    func happened(_ event: String) {
        self.lock.withLock {
            if self.events.last != event { self.events.append(event) }
        }
    }

    func became(_ task: URLSessionTask) { self.task = task }

    func collected(_ metrics: URLSessionTaskMetrics) {
        self.happened("metrics")
        self.metrics = metrics
    }

    func received(_ data: Data) {
        self.happened("data")
        self.received += Int64(data.count)
        do { try self.write(data) } catch { self.happened("writing failed: \(error)") }
        self.cancelIfEnough()
    }

    private func write(_ data: Data) throws {
        guard let output = self.actions.output else { return }
        if self.file == nil {
            _ = FileManager.default.createFile(atPath: output, contents: nil)
            self.file = try FileHandle(forWritingTo: URL(fileURLWithPath: output))
        }
        try self.file?.write(contentsOf: data)
    }

    func wrote(_ total: Int64) {
        self.happened("wrote")
        self.received = total
        self.cancelIfEnough()
    }

    func downloaded(to place: URL) {
        self.happened("downloaded")
        guard let output = self.actions.output else { return }
        do {
            try? FileManager.default.removeItem(atPath: output)
            try FileManager.default.moveItem(at: place, to: URL(fileURLWithPath: output))
        } catch {
            self.happened("moving failed: \(error)")
        }
    }

    private func cancelIfEnough() {
        guard let limit = self.actions.cancelAfter, self.received >= limit, !self.isCancelled else { return }
        self.isCancelled = true
        guard let download = self.task as? URLSessionDownloadTask, let place = self.actions.resumeData else {
            return self.task.cancel()
        }
        download.cancel(byProducingResumeData: { data in
            self.happened(data == nil ? "no resume data" : "resume data")
            try? data?.write(to: URL(fileURLWithPath: place))
        })
    }

    func completed(_ error: (any Error)?) {
        self.happened("completed")
        try? self.file?.close()
        let waiter = self.lock.withLock { () -> (CheckedContinuation<TransferReport, Never>, TransferReport)? in
            let report = TransferReport(
                self.task, events: self.events, received: self.received, error: error, metrics: self.metrics)
            self.result = report
            return self.waiter.map { ($0, report) }
        }
        if let (continuation, report) = waiter { continuation.resume(returning: report) }
    }
}
