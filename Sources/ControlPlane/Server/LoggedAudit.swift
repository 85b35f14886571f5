import GatewayCore

/// Writes a line of the log for every write.
struct LoggedAudit: AuditTrail {
    let log: TunnelLog

    func record(_ entry: AuditEntry) {
        self.log.audit(
            operation: entry.operation, path: entry.path, caller: entry.caller.name, peer: entry.peer,
            status: entry.status, code: entry.code)
    }
}
