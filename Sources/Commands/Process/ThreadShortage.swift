import StreamTransport

/// The system gives the process fewer threads than it needs, at its start. Without threads, parts of it would wait for ever.
struct ThreadShortage: Error {
    /// Threads of a command without a gateway: Swift's pool, a loop, standard input and output.
    static let clientCount = 4

    let available: Int
    let needed: Int

    /// Threads of a gateway: its loops, two of the control plane, Swift's pool, the log, name look-ups and files.
    static func gatewayCount(loops: Int) -> Int { loops + 6 }

    static func check(_ count: Int) throws(ThreadShortage) {
        let available = SystemThread.availableCount(upTo: count)
        if available < count { throw ThreadShortage(available: available, needed: count) }
    }
}

extension ThreadShortage: CustomStringConvertible {
    var description: String {
        "only \(self.available) of the \(self.needed) threads that it needs can be started; raise TasksMax of the systemd "
            + "unit, pids.max of the control group, or ulimit -u"
    }
}
