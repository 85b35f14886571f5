/// Is told of every write, carried out or refused.
protocol AuditTrail: Sendable {
    func record(_ entry: AuditEntry)
}
