extension OperationTable {
    /// The whole interface. Each resource lists its own.
    static func make(_ context: ControlContext) -> OperationTable {
        OperationTable(
            HealthResource(context: context).operations + MetricsResource(context: context).operations
                + ConnectionsResource(context: context).operations + EventsResource(context: context).operations)
    }
}
