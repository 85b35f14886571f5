import GatewayCore

extension OperationTable {
    /// The whole interface. Each resource lists its own.
    static func make(_ context: ControlContext) -> OperationTable {
        OperationTable(
            HealthResource(context: context).operations + ConnectionsResource(context: context).operations
                + TransfersResource(context: context).operations + ConfigurationResource(context: context).operations
                + ConfigurationSection.allCases.flatMap { EntriesResource(section: $0, context: context).operations })
    }
}
