"""Everything that speaks to Kafka; nothing else makes a client of it.

``Broker`` says where Kafka is. ``Producer`` publishes once and says what came of it, ``Publisher`` repeats
until messages are on their topics. ``read_topics`` and ``Reader`` read without joining a group, a
``ConsumerMember`` reads as one of a group; a worker's own consumer is Faust's. The rest administers topics
and asks about consumer groups.
"""

from aiokafka import TopicPartition

from pipeline.kafka.admin import admin_client, cluster_id
from pipeline.kafka.connection import Broker, as_broker, bootstrap_servers, check_connection, quiet_client
from pipeline.kafka.creation import never_create_topics
from pipeline.kafka.decompression import guard_batches
from pipeline.kafka.departure import always_leave
from pipeline.kafka.groups import (
    GroupFacts,
    GroupReading,
    SoleMember,
    TopicFacts,
    committed_offsets,
    group_facts,
    group_reading,
    require_described,
    require_groups,
    sole_member,
    topic_facts,
)
from pipeline.kafka.identity import require_topic_ids, topic_ids
from pipeline.kafka.member import ConsumerMember, offsets_after, open_member
from pipeline.kafka.partitions import partition_of_key
from pipeline.kafka.producer import MessagesRefused, Packet, Producer, ProducerOptions, largest_message_bytes
from pipeline.kafka.publisher import Publisher, is_set_within, partition_of
from pipeline.kafka.reader import (
    Entry,
    Reader,
    existing_partitions,
    open_reader,
    partitions_of,
    read_topic,
    read_topics,
)
from pipeline.kafka.security import KafkaSecurity
from pipeline.kafka.static_member import keep_membership
from pipeline.kafka.topics import apply_topics, check_topics, require_topics, shard_lines

__all__ = [
    "Broker",
    "Entry",
    "GroupFacts",
    "GroupReading",
    "KafkaSecurity",
    "ConsumerMember",
    "MessagesRefused",
    "Packet",
    "Producer",
    "ProducerOptions",
    "Publisher",
    "Reader",
    "SoleMember",
    "TopicFacts",
    "TopicPartition",
    "always_leave",
    "admin_client",
    "apply_topics",
    "as_broker",
    "bootstrap_servers",
    "check_connection",
    "check_topics",
    "cluster_id",
    "committed_offsets",
    "existing_partitions",
    "group_facts",
    "group_reading",
    "guard_batches",
    "is_set_within",
    "keep_membership",
    "largest_message_bytes",
    "never_create_topics",
    "offsets_after",
    "open_member",
    "open_reader",
    "partition_of",
    "partition_of_key",
    "partitions_of",
    "quiet_client",
    "read_topic",
    "read_topics",
    "require_described",
    "require_groups",
    "require_topic_ids",
    "require_topics",
    "shard_lines",
    "sole_member",
    "topic_facts",
    "topic_ids",
]
